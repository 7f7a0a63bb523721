import SluiceCore

/// Substitutes the values of arguments for `$0` and `$K0`, for the canonical text. An argument without a literal form remains.
extension SyntaxTree {
    func substituting(_ arguments: [QueryArgument]) -> SyntaxTree {
        if arguments.isEmpty { return self }
        let substitution = Substitution(arguments: arguments)
        return SyntaxTree(root: substitution.query(root), suffixes: suffixes.map(substitution.suffix))
    }
}

private struct Substitution {
    let arguments: [QueryArgument]

    func query(_ query: SyntaxQuery) -> SyntaxQuery {
        query.mapComparisons { comparison in
            var result = comparison
            result.left = operand(comparison.left)
            result.right = operand(comparison.right)
            return result
        }
    }

    func suffix(_ suffix: QuerySuffix) -> QuerySuffix {
        switch suffix.kind {
        case .sort(let keys):
            QuerySuffix(.sort(keys.map { QuerySuffix.SortKey(path: path($0.path), ascending: $0.ascending) }), at: suffix.position)
        case .distinct(let paths): QuerySuffix(.distinct(paths.map(path)), at: suffix.position)
        case .limit: suffix
        }
    }

    private func operand(_ operand: SyntaxOperand) -> SyntaxOperand {
        var result = operand
        switch operand.kind {
        case .literal, .rowKey: break
        case .argument(let number, let quantifier): result.kind = argument(number, quantifier) ?? operand.kind
        case .path(let path): result.kind = .path(self.path(path))
        case .list(let members, let quantifier): result.kind = .list(members.map(self.operand), quantifier)
        case .aggregate(let path, let function, let property): result.kind = .aggregate(self.path(path), function, property: property)
        case .arithmetic(let left, let arithmetic, let right):
            result.kind = .arithmetic(self.operand(left), arithmetic, self.operand(right))
        case .subqueryCount(let path, let variable, let inner):
            result.kind = .subqueryCount(self.path(path), variable: variable, query(inner))
        case .object(let type, let key): result.kind = .object(type: type, key: self.operand(key))
        case .shape(let shape): result.kind = .shape(self.shape(shape))
        }
        return result
    }

    private func argument(_ number: Int, _ quantifier: Quantifier?) -> SyntaxOperand.Kind? {
        guard number < arguments.count else { return nil }
        switch arguments[number] {
        case .shape(let shape): return .shape(self.shape(shape))
        case .value(.list(let values)):
            var members: [SyntaxOperand] = []
            for value in values {
                guard let kind = Substitution.literal(value) else { return nil }
                members.append(SyntaxOperand(kind: kind, position: .unknown))
            }
            return .list(members, quantifier)
        case .value(let value): return Substitution.literal(value)
        }
    }

    private static func literal(_ value: Value) -> SyntaxOperand.Kind? {
        switch value {
        case .null: return .literal(.null)
        case .list, .dictionary: return nil
        case .link(let type, let key):
            return literal(key).map { .object(type: SyntaxName(type), key: SyntaxOperand(kind: $0, position: .unknown)) }
        default: return .literal(Literal(value))
        }
    }

    private func path(_ path: SyntaxPath) -> SyntaxPath {
        var result = path
        if case .argument(let number)? = path.steps.first?.kind, number < arguments.count,
            case .value(.string(let text)) = arguments[number]
        {
            (result.steps, result.suffix) = SyntaxPath.steps(of: text, at: path.position)
            result.suffix = result.suffix ?? path.suffix
        }
        result.steps = result.steps.map { step in
            guard case .keyArgument(let number) = step.kind, number < arguments.count else { return step }
            return switch arguments[number] {
            case .value(.string(let key)): PathStep(.key(key), at: step.position)
            case .value(.int(let index)) where index >= 0: PathStep(.index(index), at: step.position)
            default: step
            }
        }
        return result
    }

    private func shape(_ shape: GeoShape) -> GeoShape {
        switch shape {
        case .box(let low, let high): .box(point(low), point(high))
        case .circle(let center, let radians): .circle(point(center), radians: coordinate(radians))
        case .polygon(let loops): .polygon(loops.map { $0.map(point) })
        }
    }

    private func point(_ point: GeoPoint) -> GeoPoint {
        GeoPoint(
            longitude: coordinate(point.longitude), latitude: coordinate(point.latitude), altitude: point.altitude.map(coordinate),
            position: point.position)
    }

    private func coordinate(_ coordinate: GeoCoordinate) -> GeoCoordinate {
        guard case .argument(let index) = coordinate.kind, index < arguments.count, case .value(let value) = arguments[index],
            let number = Number(value)
        else { return coordinate }
        return GeoCoordinate(kind: .literal(.real("\(number.asDouble)")), position: coordinate.position)
    }
}

extension SyntaxPath {
    /// Returns the steps of the path in a `$K` argument: names between dots.
    static func steps(of text: String, at position: SourcePosition) -> (steps: [PathStep], suffix: PathSuffix?) {
        var steps: [PathStep] = []
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        for (index, part) in parts.enumerated() {
            switch part {
            case "@links": steps.append(PathStep(.backlinks, at: position))
            case "@keys": steps.append(PathStep(.keys, at: position))
            case "@values": steps.append(PathStep(.values, at: position))
            case "@count" where index == parts.count - 1, "@size" where index == parts.count - 1: return (steps, .count)
            case "@type" where index == parts.count - 1: return (steps, .type)
            default: steps.append(PathStep(.name(part), at: position))
            }
        }
        return (steps, nil)
    }
}
