import SluiceCore

extension Parser {
    /// Reads a value, or a query or expression in parentheses.
    mutating func primary() throws(SluiceError) -> Node {
        guard take(.openParenthesis) else { return .operand(try value()) }
        let node = try nested { parser throws(SluiceError) in try parser.either() }
        guard take(.closeParenthesis) else {
            if case .operand = node { throw expected("a comparison operator or ')'") }
            throw expected("AND, OR or ')'")
        }
        return node
    }

    mutating func value() throws(SluiceError) -> SyntaxOperand {
        let start = position
        if let quantifier = quantifier() { return try quantified(quantifier, at: start) }
        if sees(.openBrace) { return try list(nil, at: start) }
        if take(.subquery) { return try subquery(at: start) }
        if let constant = try constant() { return constant }
        return try property(quantifier: nil, at: start)
    }

    mutating func quantifier() -> Quantifier? {
        guard tokens[index].code >= Keyword.and.rawValue else { return nil }
        if take(.any) { return .any }
        if take(.all) { return .all }
        return take(.none) ? Quantifier.none : nil
    }

    private mutating func quantified(_ quantifier: Quantifier, at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        if case .argument(let number) = current.kind {
            advance()
            return SyntaxOperand(kind: .argument(number, quantifier), position: start)
        }
        if sees(.openBrace) { return try list(quantifier, at: start) }
        let operand = try property(quantifier: quantifier, at: start)
        if case .aggregate = operand.kind {
            throw failure("\(quantifier.rawValue) cannot stand before an aggregate", at: start)
        }
        return operand
    }

    mutating func list(_ quantifier: Quantifier?, at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openBrace)
        var members: [SyntaxOperand] = []
        if !sees(.closeBrace) {
            repeat {
                guard let member = try member() else { throw expected("a constant in the list") }
                members.append(member)
            } while take(.comma)
        }
        guard take(.closeBrace) else { throw expected("',' or '}'") }
        return SyntaxOperand(kind: .list(members, quantifier), position: start)
    }

    /// Reads a constant. A list also permits a quantified argument, and `O2`, which is a property's name elsewhere.
    private mutating func member() throws(SluiceError) -> SyntaxOperand? {
        let start = position
        if let quantifier = quantifier() {
            guard case .argument(let number) = current.kind else { throw expected("an argument after \(quantifier.rawValue)") }
            advance()
            return SyntaxOperand(kind: .argument(number, quantifier), position: start)
        }
        if source.indices.contains(Int(current.start)), source[Int(current.start)] == UInt8(ascii: "O"),
            case .name(let name) = current.kind, let row = Int64(name.dropFirst())
        {
            advance()
            return SyntaxOperand(kind: .rowKey(table: nil, row: row), position: start)
        }
        return try constant()
    }

    // MARK: Constants

    /// Reads a constant that does not begin with a quantifier, or returns nil.
    private mutating func constant() throws(SluiceError) -> SyntaxOperand? {
        let start = position
        switch current.kind {
        case .literal(let literal):
            advance()
            return SyntaxOperand(kind: .literal(literal), position: start)
        case .natural(let value):
            advance()
            return SyntaxOperand(kind: .literal(.int(value)), position: start)
        case .argument(let number):
            advance()
            return SyntaxOperand(kind: .argument(number, nil), position: start)
        case .keyword(.obj):
            advance()
            return try object(at: start)
        case .keyword(.binary) where isCall:
            advance()
            return try binary(at: start)
        case .rowKey(let table, let row):
            advance()
            return SyntaxOperand(kind: .rowKey(table: table, row: row), position: start)
        default:
            return nil
        }
    }

    private var isCall: Bool { tokens[index + 1].code == Symbol.openParenthesis.rawValue }

    private mutating func object(at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        let place = position
        guard case .literal(.string(let type)) = current.kind else { throw expected("the name of a class in quotes") }
        advance()
        try expect(.comma)
        let keyPlace = position
        // The check precedes `constant()`, because objects as keys of objects would recurse without bound.
        guard !sees(.obj), let key = try constant(), key.isKey else {
            throw failure("expected a primary key: a number, string, uuid, oid or argument", at: keyPlace)
        }
        try expect(.closeParenthesis)
        let hasPrefix = type.utf8.starts(with: "class_".utf8)
        let name = SyntaxName(hasPrefix ? String(decoding: type.utf8.dropFirst(6), as: UTF8.self) : type, at: place)
        return SyntaxOperand(kind: .object(type: name, key: key), position: start)
    }

    private mutating func binary(at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        let bytes: [UInt8]
        switch current.kind {
        case .literal(.string(let text)): bytes = Array(text.utf8)
        case .literal(.bytes(let content)): bytes = content
        default: throw expected("a string or B64\"…\"")
        }
        advance()
        try expect(.closeParenthesis)
        return SyntaxOperand(kind: .literal(.binary(bytes)), position: start)
    }

    // MARK: Properties

    /// Reads the next token as a property's name, or returns nil. Some keywords are permitted as names.
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

    mutating func property(quantifier: Quantifier?, at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        var path = SyntaxPath(quantifier: quantifier, steps: [try firstStep()], position: start)
        while path.suffix == nil {
            let dot = position
            if take(.dot) {
                let place = position
                if case .meta(let word) = current.kind {
                    if let operand = try meta(word, &path) { return operand }
                } else if let name = name() {
                    path.steps.append(PathStep(.name(name), at: place))
                } else {
                    throw expected("a property's name after '.'")
                }
            } else if take(.openBracket) {
                try subscripted(&path, at: dot)
            } else {
                break
            }
        }
        return SyntaxOperand(kind: .path(path), position: start)
    }

    private mutating func firstStep() throws(SluiceError) -> PathStep {
        let place = position
        let kind: PathStep.Kind
        switch current.kind {
        case .pathArgument(let number): kind = .argument(number)
        case .meta(.links): kind = .backlinks
        case .meta(.keys): kind = .keys
        case .meta(.values): kind = .values
        default:
            guard let name = name() else { throw expected("a property or a value") }
            return PathStep(.name(name), at: place)
        }
        advance()
        return PathStep(kind, at: place)
    }

    /// Reads the word after `.`. Returns nil for a step, or the operand that the word completes.
    private mutating func meta(_ word: MetaWord, _ path: inout SyntaxPath) throws(SluiceError) -> SyntaxOperand? {
        let place = position
        advance()
        path.suffixPosition = place
        switch word {
        case .links: path.steps.append(PathStep(.backlinks, at: place))
        case .keys: path.steps.append(PathStep(.keys, at: place))
        case .values: path.steps.append(PathStep(.values, at: place))
        case .count: path.suffix = .count
        case .type: path.suffix = .type
        case .max: return try aggregate(.max, path)
        case .min: return try aggregate(.min, path)
        case .sum: return try aggregate(.sum, path)
        case .average: return try aggregate(.average, path)
        }
        return nil
    }

    private mutating func aggregate(_ aggregate: Aggregate, _ path: SyntaxPath) throws(SluiceError) -> SyntaxOperand {
        var property: SyntaxName?
        if take(.dot) {
            let place = position
            guard let name = name() else { throw expected("the name of a property after '\(aggregate.rawValue).'") }
            property = SyntaxName(name, at: place)
        }
        return SyntaxOperand(kind: .aggregate(path, aggregate, property: property), position: path.position)
    }

    /// Reads the contents of brackets after a path, and the closing bracket. `[SIZE]` ends the path.
    private mutating func subscripted(_ path: inout SyntaxPath, at start: SourcePosition) throws(SluiceError) {
        let kind: PathStep.Kind?
        switch current.kind {
        case .natural(let index): kind = .index(index)
        case .keyword(.first): kind = .first
        case .keyword(.last): kind = .last
        case .symbol(.times): kind = .every
        case .literal(.string(let key)): kind = .key(key)
        case .argument(let number): kind = .keyArgument(number)
        case .keyword(.size): kind = nil
        default: throw expected("an index, a key in quotes, an argument, FIRST, LAST, SIZE or *")
        }
        advance()
        try expect(.closeBracket)
        if let kind {
            path.steps.append(PathStep(kind, at: start))
        } else {
            path.suffix = .count
            path.suffixPosition = start
        }
    }

    private mutating func subquery(at start: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        try expect(.openParenthesis)
        let collection = position
        guard case .path(let path) = try property(quantifier: nil, at: collection).kind, path.suffix == nil else {
            throw failure("SUBQUERY takes the path of a collection", at: collection)
        }
        try expect(.comma)
        let place = position
        guard let variable = name(), variable.utf8.first == UInt8(ascii: "$"), variable.utf8.count > 1 else {
            throw failure("expected the variable of the SUBQUERY, '$' and a letter", at: place)
        }
        try expect(.comma)
        let inner = try nested { parser throws(SluiceError) in try parser.query() }
        try expect(.closeParenthesis)
        guard take(.dot), case .meta(.count) = current.kind else { throw expected(".@count after SUBQUERY(…)") }
        advance()
        return SyntaxOperand(kind: .subqueryCount(path, variable: SyntaxName(variable, at: place), inner), position: start)
    }
}

extension SyntaxOperand {
    /// `true` if the operand may be a primary key in `obj(…)`.
    var isKey: Bool {
        switch kind {
        case .argument(_, nil): true
        case .literal(.int), .literal(.real), .literal(.string), .literal(.uuid), .literal(.objectId), .literal(.null): true
        default: false
        }
    }
}
