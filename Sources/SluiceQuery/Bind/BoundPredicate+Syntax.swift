import SluiceCore
import SluiceValues

/// Converts a bound condition to a syntax tree, for printing.
extension BoundPredicate {
    func syntax(in type: ObjectType) -> SyntaxQuery {
        switch self {
        case .constant(let value): SyntaxQuery(.constant(value))
        case .and(let parts): SyntaxQuery(.and(parts.map { $0.syntax(in: type) }))
        case .or(let parts): SyntaxQuery(.or(parts.map { $0.syntax(in: type) }))
        case .not(let inner): SyntaxQuery(.not(inner.syntax(in: type)))
        case .test(let subject, let test): test.syntax(subject, type.properties[subject.property])
        case .properties(let left, let comparison, let right, let foldsCase):
            SyntaxQuery(
                .compare(
                    SyntaxComparison(
                        left: .property(type.properties[left].name), comparison: comparison.syntax, foldsCase: foldsCase,
                        right: .property(type.properties[right].name), position: .unknown)))
        case .within(let property, let geometry):
            SyntaxQuery(
                .compare(
                    SyntaxComparison(
                        left: .property(type.properties[property].name), comparison: .geoWithin, foldsCase: false,
                        right: SyntaxOperand(kind: .shape(geometry.shape), position: .unknown), position: .unknown)))
        }
    }
}

extension SyntaxOperand {
    fileprivate static func property(
        _ name: String, quantifier: Quantifier? = nil, suffix: PathSuffix? = nil
    ) -> SyntaxOperand {
        let path = SyntaxPath(quantifier: quantifier, steps: [PathStep(.name(name))], suffix: suffix)
        return SyntaxOperand(kind: .path(path), position: .unknown)
    }

    fileprivate init(_ value: Value, type: PropertyType) {
        let kind: Kind
        switch (type, value) {
        case (_, .null): kind = .literal(.null)
        case (_, .list(let members)):
            kind = .list(members.map { SyntaxOperand($0, type: type) }, nil)
        case (.link(let target), _): kind = .object(type: SyntaxName(target), key: SyntaxOperand(value, type: .mixed))
        case (_, .link(let target, let key)): kind = .object(type: SyntaxName(target), key: SyntaxOperand(key, type: .mixed))
        default: kind = .literal(Literal(value))
        }
        self.init(kind: kind, position: .unknown)
    }
}

extension Literal {
    /// Creates the literal of a scalar that is not null. Other values become `null`.
    init(_ value: Value) {
        switch value {
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .float(let value): self = value.isFinite ? .float("\(value)") : Literal(.double(Double(value)))
        case .double(let value):
            self = value.isFinite ? .real("\(value)") : value.isNaN ? .nan : .infinity(negative: value < 0)
        case .decimal(let value):
            if value.isNaN {
                self = .nan
            } else if value.isInfinite {
                self = .infinity(negative: value.isNegative)
            } else {
                self = Int64(value.description).map { .int($0) } ?? .real(value.description)
            }
        case .string(let value): self = .string(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        case .null, .list, .dictionary, .link: self = .null
        }
    }
}

extension Test {
    fileprivate func syntax(_ subject: Subject, _ property: Property) -> SyntaxQuery {
        let left: SyntaxOperand
        let type: PropertyType
        switch subject {
        case .property:
            left = .property(property.name)
            type = property.type
        case .elements(_, let quantifier):
            left = .property(property.name, quantifier: quantifier)
            type = property.type
        case .count:
            left = .property(property.name, suffix: .count)
            type = .int
        }
        let right = SyntaxOperand(value, type: type)
        // A list constant of a mixed property in an equality has no literal. Only lists of `isIn` occur here.
        return SyntaxQuery(
            .compare(
                SyntaxComparison(
                    left: left, comparison: comparison.syntax, foldsCase: foldsCase, right: right, position: .unknown)))
    }
}

extension Geometry {
    /// The shape as a query's text contains it.
    fileprivate var shape: GeoShape {
        func coordinate(_ number: Double) -> GeoCoordinate {
            GeoCoordinate(kind: .literal(Literal(.double(number))), position: .unknown)
        }
        func point(_ place: Place) -> GeoPoint {
            GeoPoint(longitude: coordinate(place.longitude), latitude: coordinate(place.latitude), position: .unknown)
        }
        switch self {
        case .box(let low, let high): return .box(point(low), point(high))
        case .circle(let center, let radians): return .circle(point(center), radians: coordinate(radians))
        case .polygon(let loops): return .polygon(loops.map { loop in (loop + loop.prefix(1)).map(point) })
        }
    }
}
