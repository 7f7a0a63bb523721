import SluiceCore

extension Parser {
    /// A value, or whatever stands in parentheses.
    mutating func primary() throws(SluiceError) -> Node {
        let position = current.position
        if take(.openParenthesis) {
            let node = try nested { parser throws(SluiceError) in try parser.either() }
            guard take(.closeParenthesis) else {
                if case .operand = node { throw expected("a comparison operator or ')'") }
                throw expected("AND, OR or ')'")
            }
            return node
        }
        if let quantifier = quantifier() { return .operand(try quantified(quantifier, at: position)) }
        if current.kind == .symbol(.openBrace) { return .operand(try list(nil)) }
        if take(.subquery) { return .operand(try subquery(at: position)) }
        if let constant = try constant() { return .operand(constant) }
        return .operand(try property(quantifier: nil))
    }

    private mutating func quantifier() -> Quantifier? {
        if take(.any) { return .any }
        if take(.all) { return .all }
        return take(.none) ? Quantifier.none : nil
    }

    private mutating func quantified(_ quantifier: Quantifier, at position: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        if case .argument(let number) = current.kind {
            advance()
            return SyntaxOperand(kind: .argument(number, quantifier), position: position)
        }
        if current.kind == .symbol(.openBrace) { return try list(quantifier) }
        let operand = try property(quantifier: quantifier)
        if case .aggregate = operand.kind {
            throw failure("\(quantifier.rawValue) cannot stand before an aggregate", at: position)
        }
        return operand
    }

    private mutating func list(_ quantifier: Quantifier?) throws(SluiceError) -> SyntaxOperand {
        let position = current.position
        try expect(.openBrace)
        var members: [SyntaxOperand] = []
        if current.kind != .symbol(.closeBrace) {
            repeat {
                guard let member = try constant() else { throw expected("a constant in the list") }
                members.append(member)
            } while take(.comma)
        }
        guard take(.closeBrace) else { throw expected("',' or '}'") }
        return SyntaxOperand(kind: .list(members, quantifier), position: position)
    }

    // MARK: Constants

    /// A constant that does not begin with a quantifier; nil when none stands here.
    private mutating func constant() throws(SluiceError) -> SyntaxOperand? {
        let position = current.position
        switch current.kind {
        case .literal(let literal):
            advance()
            return SyntaxOperand(kind: .literal(literal), position: position)
        case .natural(let value):
            advance()
            return SyntaxOperand(kind: .literal(.int(value)), position: position)
        case .argument(let number):
            advance()
            return SyntaxOperand(kind: .argument(number, nil), position: position)
        case .keyword(.obj):
            advance()
            return try object(at: position)
        case .keyword(.binary) where tokens[index + 1].kind == .symbol(.openParenthesis):
            advance()
            return try binary(at: position)
        default:
            return nil
        }
    }

    private mutating func object(at position: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        guard case .literal(.string(let type)) = current.kind else { throw expected("the name of a class in quotes") }
        advance()
        try expect(.comma)
        guard let key = try constant(), key.isKey else { throw expected("a primary key: a number, string, uuid, oid or argument") }
        try expect(.closeParenthesis)
        let name = type.hasPrefix("class_") ? String(type.dropFirst(6)) : type
        return SyntaxOperand(kind: .object(type: name, key: key), position: position)
    }

    private mutating func binary(at position: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        let bytes: [UInt8]
        switch current.kind {
        case .literal(.string(let text)): bytes = Array(text.utf8)
        case .literal(.bytes(let content)): bytes = content
        default: throw expected("a string or B64\"…\"")
        }
        advance()
        try expect(.closeParenthesis)
        return SyntaxOperand(kind: .literal(.binary(bytes)), position: position)
    }

    // MARK: Properties

    /// The next token as a property's name, which some keywords may be too; nil when it is none.
    mutating func name() -> String? {
        switch current.kind {
        case .name(let name):
            advance()
            return name
        case .keyword(let keyword) where keyword.mayBeName:
            defer { advance() }
            return written(current)
        default:
            return nil
        }
    }

    private mutating func property(quantifier: Quantifier?) throws(SluiceError) -> SyntaxOperand {
        let position = current.position
        var path = try pathStart(quantifier: quantifier)
        while true {
            if take(.dot) {
                if case .meta(let word) = current.kind {
                    if let operand = try meta(word, &path) { return operand }
                } else if let name = name() {
                    path.steps.append(.name(name))
                } else {
                    throw expected("a property's name after '.'")
                }
            } else if current.kind == .symbol(.openBracket) {
                if try subscripted(&path) { break }
            } else {
                break
            }
        }
        return SyntaxOperand(kind: .path(path), position: position)
    }

    private mutating func pathStart(quantifier: Quantifier?) throws(SluiceError) -> SyntaxPath {
        var path = SyntaxPath(quantifier: quantifier, steps: [], suffix: nil, position: current.position)
        if case .pathArgument(let number) = current.kind {
            advance()
            path.steps = [.argument(number)]
        } else if current.kind == .meta(.links) {
            advance()
            path.steps = [.backlinks]
        } else if let name = name() {
            path.steps = [.name(name)]
        } else {
            throw expected("a property or a value")
        }
        return path
    }

    /// What follows `.@`: a step (then nil), or the operand that it completes.
    private mutating func meta(_ word: MetaWord, _ path: inout SyntaxPath) throws(SluiceError) -> SyntaxOperand? {
        advance()
        switch word {
        case .links: path.steps.append(.backlinks)
        case .keys: path.steps.append(.keys)
        case .values: path.steps.append(.values)
        case .count, .type:
            path.suffix = word == .count ? .count : .type
            return SyntaxOperand(kind: .path(path), position: path.position)
        case .max: return try aggregate(.max, path)
        case .min: return try aggregate(.min, path)
        case .sum: return try aggregate(.sum, path)
        case .average: return try aggregate(.average, path)
        }
        return nil
    }

    private mutating func aggregate(_ aggregate: Aggregate, _ path: SyntaxPath) throws(SluiceError) -> SyntaxOperand {
        var property: String?
        if take(.dot) {
            guard let name = name() else { throw expected("the name of a property after '\(aggregate.rawValue).'") }
            property = name
        }
        return SyntaxOperand(kind: .aggregate(path, aggregate, property: property), position: path.position)
    }

    /// `[…]` after a path; true when it was `[SIZE]`, which ends the path.
    private mutating func subscripted(_ path: inout SyntaxPath) throws(SluiceError) -> Bool {
        try expect(.openBracket)
        switch current.kind {
        case .natural(let index): path.steps.append(.index(index))
        case .keyword(.first): path.steps.append(.first)
        case .keyword(.last): path.steps.append(.last)
        case .symbol(.times): path.steps.append(.every)
        case .literal(.string(let key)): path.steps.append(.key(key))
        case .argument(let number): path.steps.append(.keyArgument(number))
        case .keyword(.size): path.suffix = .count
        default: throw expected("an index, a key in quotes, FIRST, LAST, SIZE or *")
        }
        advance()
        try expect(.closeBracket)
        return path.suffix == .count
    }

    private mutating func subquery(at position: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        guard case .path(let path) = try property(quantifier: nil).kind, path.suffix == nil else {
            throw failure("SUBQUERY takes the path of a collection", at: position)
        }
        try expect(.comma)
        let variablePosition = current.position
        guard let variable = name(), variable.hasPrefix("$"), variable.utf8.count > 1 else {
            throw failure("the variable of a SUBQUERY begins with '$' and a letter", at: variablePosition)
        }
        try expect(.comma)
        let inner = try nested { parser throws(SluiceError) in try parser.query() }
        try expect(.closeParenthesis)
        guard take(.dot), current.kind == .meta(.count) else { throw expected(".@count after SUBQUERY(…)") }
        advance()
        return SyntaxOperand(kind: .subqueryCount(path, variable: variable, inner), position: position)
    }
}

extension SyntaxOperand {
    /// Whether it may be a primary key in `obj(…)`.
    var isKey: Bool {
        switch kind {
        case .argument(_, nil): true
        case .literal(.int), .literal(.real), .literal(.string), .literal(.uuid), .literal(.objectId), .literal(.null): true
        default: false
        }
    }
}
