import SluiceCore

/// Resolves the names of a query in a class, converts its constants to the types of their properties, and folds constant conditions.
struct Binder {
    let type: ObjectType
    let arguments: [Value]
    let diagnostic: QueryDiagnostic

    /// One side of a comparison.
    enum Side {
        case subject(Subject, Property)
        case constant(QueryConstant, argument: Int?)
        case constants(Constants, Quantifier?)
    }

    /// Constants with the numbers of their arguments.
    typealias Constants = [(constant: QueryConstant, argument: Int?)]

    func bind(_ query: SyntaxQuery) throws(SluiceError) -> BoundPredicate {
        switch query.kind {
        case .constant(let value): return .constant(value)
        case .and(let parts): return .conjunction(try parts.map { part throws(SluiceError) in try bind(part) })
        case .or(let parts): return .disjunction(try parts.map { part throws(SluiceError) in try bind(part) })
        case .not(let inner): return .negation(try bind(inner))
        case .compare(let comparison): return try bind(comparison)
        }
    }

    // MARK: Sides

    func side(_ operand: SyntaxOperand) throws(SluiceError) -> Side {
        switch operand.kind {
        case .literal(let literal): return .constant(QueryConstant(literal), argument: nil)
        case .argument(let number, let quantifier): return try argument(number, quantifier, at: operand.position)
        case .object(let type, let key): return .constant(.link(type: type.text, key: try self.key(key)), argument: nil)
        case .list(let members, let quantifier):
            let constants = try members.map { member throws(SluiceError) in try constant(member) }
            return .constants(constants, quantifier)
        case .path(let path): return try subject(path)
        case .aggregate(_, let aggregate, _): throw unsupported("the aggregate \(aggregate.rawValue)", at: operand.position)
        case .arithmetic: throw unsupported("arithmetic", at: operand.position)
        case .subqueryCount: throw unsupported("SUBQUERY", at: operand.position)
        case .shape: throw unsupported("GEOWITHIN", at: operand.position)
        case .rowKey: throw unsupported("a link by row number, which means nothing outside one file,", at: operand.position)
        }
    }

    private func constant(_ operand: SyntaxOperand) throws(SluiceError) -> Constants.Element {
        guard case .constant(let constant, let argument) = try side(operand) else {
            throw mismatch("a list cannot hold another list", at: operand.position)
        }
        return (constant, argument)
    }

    private func key(_ operand: SyntaxOperand) throws(SluiceError) -> Value { try constant(operand).0.value }

    private func value(of number: Int, at position: SourcePosition) throws(SluiceError) -> Value {
        guard number < arguments.count else { throw diagnostic.missingArgument(number, of: arguments.count, at: position) }
        return arguments[number]
    }

    private func argument(_ number: Int, _ quantifier: Quantifier?, at position: SourcePosition) throws(SluiceError) -> Side {
        let value = try value(of: number, at: position)
        if case .list(let members) = value { return .constants(members.map { (QueryConstant(argument: $0), number) }, quantifier) }
        guard quantifier == nil else { throw diagnostic.quantifiedArgument(number, value, at: position) }
        return .constant(QueryConstant(argument: value), argument: number)
    }

    // MARK: Properties

    private func subject(_ path: SyntaxPath) throws(SluiceError) -> Side {
        guard case .name(let name)? = path.steps.first?.kind else {
            throw unsupported(path.steps.first?.kind == .backlinks ? "@links" : "a path given as an argument", at: path.position)
        }
        guard let index = type.index(of: name) else { throw unknown(name, at: path.position) }
        guard path.steps.count == 1 else { throw unsupported("a path beyond the property '\(name)'", at: path.position) }
        let property = type.properties[index]
        if path.suffix == .type { throw unsupported("@type", at: path.position) }
        guard property.collection != .none else { return try scalar(index, property, path) }
        guard property.collection != .dictionary else { throw unsupported("the dictionary '\(name)'", at: path.position) }
        if path.suffix == .count {
            let count = Property(id: property.id, name: "\(name).@count", type: .int)
            return .subject(.count(index), count)
        }
        if case .embedded = property.type { throw unsupported("the list of embedded objects '\(name)'", at: path.position) }
        return .subject(.elements(index, path.quantifier ?? .any), property)
    }

    private func scalar(_ index: Int, _ property: Property, _ path: SyntaxPath) throws(SluiceError) -> Side {
        if let quantifier = path.quantifier {
            throw mismatch(
                "The keypath following '\(quantifier.rawValue)' must contain a list. Found '\(property.name)'", at: path.position)
        }
        if path.suffix != nil { throw unsupported("@count of '\(property.name)', which is not a list,", at: path.position) }
        return .subject(.property(index), property)
    }

    // MARK: Errors

    func unsupported(_ what: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryUnsupported, "\(what) is not supported in a query on '\(type.name)'", at: position)
    }

    func mismatch(_ sentence: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryTypeMismatch, sentence, at: position)
    }

    private func unknown(_ name: String, at position: SourcePosition) -> SluiceError {
        let suggestion = Suggestion.nearest(to: name, in: type.properties.map(\.name))
        return diagnostic.error(
            .queryUnknownProperty, "'\(type.name)' has no property '\(name)'", at: position,
            fix: suggestion.map { "Did you mean '\($0)'?" })
    }
}
