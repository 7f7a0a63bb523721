import SluiceCore
import SluiceValues

extension QueryBinder {
    /// Constants with the numbers of their arguments.
    typealias Constants = [(constant: QueryConstant, argument: Int?)]

    /// One side of a comparison before it is joined with the other.
    enum Side {
        case constant(QueryConstant, argument: Int?)
        case constants(Constants, Quantifier?)
        case bound(BoundSide)
    }

    func side(_ operand: SyntaxOperand) throws(SluiceError) -> Side {
        switch operand.kind {
        case .literal(let literal): return .constant(QueryConstant(literal), argument: nil)
        case .argument(let number, let quantifier): return try argumentSide(number, quantifier, at: operand.position)
        case .object(let type, let key):
            return .constant(.link(type: try className(type.text, at: type.position), key: try self.key(key)), argument: nil)
        case .list(let members, let quantifier):
            var constants: Constants = []
            constants.reserveCapacity(members.count)
            for member in members { constants.append(try constant(member)) }
            return .constants(constants, quantifier)
        case .path(let path):
            let bound = try self.path(path)
            // A count is one value, for which ANY and ALL have no effect. Realm ignores NONE as well, and so selects the opposite of the
            // text. It is refused here, because a rule or a subscription may rely on it.
            if !bound.isMany, path.quantifier == Quantifier.none {
                throw diagnostic.error(
                    .queryTypeMismatch, "'NONE' needs several values, and '\(written(path))' is one number", at: path.position,
                    fix: "Write NOT before the comparison.")
            }
            let quantifier = bound.isMany ? path.quantifier ?? .any : .any
            return .bound(
                BoundSide(
                    operand: .path(bound), quantifier: quantifier, isQuantified: path.quantifier != nil, type: bound.type,
                    isMany: bound.isMany, position: operand.position))
        case .aggregate(let path, let function, let property):
            return .bound(try aggregate(path, function, property, at: path.suffixPosition))
        case .arithmetic(let left, let arithmetic, let right):
            return try self.arithmetic(left, arithmetic, right, at: operand.position)
        case .subqueryCount(let path, let variable, let query):
            let count = try subqueryCount(path, variable: variable, query, at: operand.position)
            return .bound(
                BoundSide(
                    operand: count, quantifier: .any, isQuantified: false, type: .value(.int), isMany: false, position: operand.position))
        case .rowKey: throw unsupported("a link by row number, which means nothing outside one file,", at: operand.position)
        case .shape: throw mismatch("a shape stands only behind GEOWITHIN", at: operand.position)
        }
    }

    private func className(_ name: String, at position: SourcePosition) throws(SluiceError) -> String {
        schema.types[try typeIndex(name, at: position)].name
    }

    func constant(_ operand: SyntaxOperand) throws(SluiceError) -> Constants.Element {
        guard case .constant(let constant, let argument) = try side(operand) else {
            throw mismatch("a list cannot hold another list", at: operand.position)
        }
        return (constant, argument)
    }

    private func key(_ operand: SyntaxOperand) throws(SluiceError) -> Value { try constant(operand).0.value }

    private func argumentSide(_ number: Int, _ quantifier: Quantifier?, at position: SourcePosition) throws(SluiceError) -> Side {
        guard case .value(let value) = try argument(number, at: position) else {
            throw diagnostic.error(.queryArgument, "Argument $\(number) is a shape, which only GEOWITHIN takes", at: position)
        }
        if case .list(let members) = value { return .constants(members.map { (QueryConstant(argument: $0), number) }, quantifier) }
        guard quantifier == nil else { throw diagnostic.quantifiedArgument(number, value, at: position) }
        return .constant(QueryConstant(argument: value), argument: number)
    }

    // MARK: Aggregates

    private func aggregate(
        _ path: SyntaxPath, _ function: Aggregate, _ property: SyntaxName?, at position: SourcePosition
    ) throws(SluiceError) -> BoundSide {
        let aggregate: BoundAggregate
        if let property {
            guard let (objects, type) = try objects(path) else { throw noList(function, path) }
            let element = try element(property.text, of: type, at: property.position)
            guard case .value(let valueType) = element.type, !element.isMany else {
                throw refused(function, "\(written(path)).\(property.text)", "list", at: position)
            }
            aggregate = BoundAggregate(collection: objects, function: function, element: element, type: valueType)
        } else {
            guard let (collection, type) = try valueCollection(path) else { throw noList(function, path) }
            aggregate = BoundAggregate(collection: collection, function: function, element: nil, type: type)
        }
        let type = try resultType(aggregate, written(path) + (property.map { ".\($0.text)" } ?? ""), at: position)
        return BoundSide(
            operand: .aggregate(aggregate), quantifier: .any, isQuantified: false, type: .value(type),
            isMany: aggregate.element == nil && aggregate.collection.isMany, position: path.position)
    }

    /// Returns the collection for `list`, `dict`, and the equivalent `dict.@values`.
    private func valueCollection(_ path: SyntaxPath) throws(SluiceError) -> (BoundPath, PropertyType)? {
        var plain = path
        if plain.steps.last?.kind == .values { plain.steps.removeLast() }
        guard let (collection, type) = try collection(plain) else { return nil }
        switch type {
        case .link, .embedded:
            throw mismatch("An aggregate over the objects of '\(written(path))' needs one of their properties behind it", at: path.position)
        default: return (collection, type)
        }
    }

    private func noList(_ function: Aggregate, _ path: SyntaxPath) -> SluiceError {
        mismatch("Operation '\(function.rawValue)' cannot apply to '\(written(path))' because it is not a list", at: path.position)
    }

    private func refused(_ function: Aggregate, _ name: String, _ type: String, at position: SourcePosition) -> SluiceError {
        mismatch("Operation '\(function.rawValue)' is not supported on '\(name)' of type '\(type)'", at: position)
    }

    private func resultType(_ aggregate: BoundAggregate, _ name: String, at position: SourcePosition) throws(SluiceError) -> PropertyType {
        switch (aggregate.type, aggregate.function) {
        case (.int, .sum): return .int
        case (.int, .average), (.float, .sum), (.float, .average), (.double, .sum), (.double, .average): return .double
        case (.decimal, .sum), (.decimal, .average), (.mixed, .sum), (.mixed, .average): return .decimal
        case (.int, _), (.float, _), (.double, _), (.decimal, _), (.mixed, _): return aggregate.type
        case (.timestamp, .min), (.timestamp, .max): return .timestamp
        default: throw refused(aggregate.function, name, aggregate.type.name, at: position)
        }
    }

    // MARK: Arithmetic

    private func arithmetic(
        _ left: SyntaxOperand, _ arithmetic: Arithmetic, _ right: SyntaxOperand, at position: SourcePosition
    ) throws(SluiceError) -> Side {
        let sides = (try side(left), try side(right))
        if case (.constant(let l, _), .constant(let r, _)) = sides {
            _ = try promoted(sides.0, sides.1, arithmetic, at: position)
            return .constant(QueryConstant(argument: Calculation.apply(arithmetic, l.value, r.value)), argument: nil)
        }
        let type = try promoted(sides.0, sides.1, arithmetic, at: position)
        let (l, r) = (operand(sides.0, type, at: position), operand(sides.1, type, at: position))
        if l.isMany, r.isMany { throw mismatch("Cannot perform '\(arithmetic.rawValue)' operation on two lists", at: position) }
        return .bound(
            BoundSide(
                operand: .arithmetic(l.operand, arithmetic, r.operand), quantifier: l.isMany ? l.quantifier : r.quantifier,
                isQuantified: l.isQuantified || r.isQuantified, type: type, isMany: l.isMany || r.isMany,
                position: position))
    }

    private func operand(_ side: Side, _ type: BoundType, at position: SourcePosition) -> BoundSide {
        switch side {
        case .bound(let side): return side
        case .constants:
            preconditionFailure("`promoted` refuses lists")
        case .constant(let constant, _):
            // A decimal calculation uses the digits of the text.
            var value = constant.value
            if type == .value(.decimal), let text = constant.digits, let decimal = Decimal128(rounding: text) { value = .decimal(decimal) }
            return BoundSide(
                operand: .constant(value), quantifier: .any, isQuantified: false, type: constant.type, isMany: false, position: position)
        }
    }

    /// Returns the wider of two number types, or mixed if the values determine it.
    private func promoted(
        _ left: Side, _ right: Side, _ arithmetic: Arithmetic, at position: SourcePosition
    ) throws(SluiceError) -> BoundType {
        let (l, r) = (type(left), type(right))
        if let l, let r {
            if l == .null || r == .null { return .null }
            if case .value(let a) = l, case .value(let b) = r, let wider = PropertyType.wider(a, b) { return .value(wider) }
        }
        throw mismatch(
            "Cannot perform '\(arithmetic.rawValue)' operation on '\(l?.name ?? "list")' and '\(r?.name ?? "list")'", at: position
        )
    }

    /// Returns nil for a list of constants.
    private func type(_ side: Side) -> BoundType? {
        switch side {
        case .bound(let side): side.type
        case .constant(let constant, _): constant.type
        case .constants: nil
        }
    }
}

extension PropertyType {
    static func wider(_ left: PropertyType, _ right: PropertyType) -> PropertyType? {
        if left == .mixed || right == .mixed {
            let other = left == .mixed ? right : left
            return other == .mixed || other.isNumeric ? .mixed : nil
        }
        let order: [PropertyType] = [.int, .float, .double, .decimal]
        guard let l = order.firstIndex(of: left), let r = order.firstIndex(of: right) else { return nil }
        return order[max(l, r)]
    }
}

extension QueryConstant {
    /// The type before conversion. A container counts as mixed.
    var type: BoundType {
        switch self {
        case .null: .null
        case .bool: .value(.bool)
        case .int: .value(.int)
        case .double: .value(.double)
        case .float: .value(.float)
        case .decimal: .value(.decimal)
        case .string: .value(.string)
        case .binary, .bytes: .value(.binary)
        case .timestamp: .value(.timestamp)
        case .objectId: .value(.objectId)
        case .uuid: .value(.uuid)
        case .link(let type, _): .value(.link(to: type))
        case .container: .value(.mixed)
        }
    }

    /// The written digits of a number with a fraction.
    var digits: String? {
        switch self {
        case .double(_, let text), .float(_, let text): text
        default: nil
        }
    }
}
