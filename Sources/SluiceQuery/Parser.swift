import SluiceCore

/// Builds the syntax tree by recursive descent. Precedence, loosest first: OR, AND, + -, * /, comparison, NOT.
///
/// A parenthesis may hold a query or an expression, which is known only behind it; so everything below OR gives a
/// `Node` that is one or the other, and whoever needs a certain kind asks for it.
struct Parser {
    let diagnostic: QueryDiagnostic
    let source: String
    let tokens: [Token]
    var index = 0
    var depth = 0

    enum Node {
        case query(SyntaxQuery)
        case operand(SyntaxOperand)
    }

    static func parse(_ source: String) throws(SluiceError) -> SyntaxTree {
        let tokens = try Lexer.tokens(of: source)
        var parser = Parser(diagnostic: QueryDiagnostic(source: source), source: source, tokens: tokens)
        let root = try parser.query()
        let suffixes = try parser.suffixes()
        guard parser.current.kind == .end else { throw parser.expected("AND, OR, SORT, DISTINCT, LIMIT or the end of the query") }
        return SyntaxTree(root: root, suffixes: suffixes)
    }

    // MARK: Tokens

    var current: Token { tokens[index] }

    mutating func advance() { if index < tokens.count - 1 { index += 1 } }

    mutating func take(_ symbol: Symbol) -> Bool {
        guard current.kind == .symbol(symbol) else { return false }
        advance()
        return true
    }

    mutating func take(_ keyword: Keyword) -> Bool {
        guard current.kind == .keyword(keyword) else { return false }
        advance()
        return true
    }

    mutating func expect(_ symbol: Symbol) throws(SluiceError) {
        guard take(symbol) else { throw expected("'\(symbol.rawValue)'") }
    }

    func written(_ token: Token) -> String {
        let utf8 = source.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: token.start)
        return String(source[start..<utf8.index(start, offsetBy: token.end - token.start)])
    }

    func expected(_ what: String) -> SluiceError {
        let found = current.kind == .end ? "the query ends" : "found '\(written(current).prefix(60))'"
        return failure("expected \(what), \(found)", at: current.position)
    }

    func failure(_ sentence: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.querySyntax, sentence, at: position)
    }

    /// Counts a level of nesting for the time of `body`, so that hostile text cannot exhaust the stack.
    mutating func nested<R>(_ body: (inout Parser) throws(SluiceError) -> R) throws(SluiceError) -> R {
        guard depth < Limits.nestingDepth else {
            throw failure("the query is nested deeper than \(Limits.nestingDepth) levels", at: current.position)
        }
        depth += 1
        defer { depth -= 1 }
        return try body(&self)
    }

    // MARK: Queries

    mutating func query() throws(SluiceError) -> SyntaxQuery { try asQuery(either()) }

    /// The node as a query; an expression alone is none.
    private func asQuery(_ node: Node) throws(SluiceError) -> SyntaxQuery {
        guard case .query(let query) = node else {
            throw expected("a comparison operator (a property alone is no condition; write '== true')")
        }
        return query
    }

    private func asOperand(_ node: Node, at position: SourcePosition) throws(SluiceError) -> SyntaxOperand {
        guard case .operand(let operand) = node else { throw failure("expected a value, found a condition", at: position) }
        return operand
    }

    /// A query or, inside parentheses, an expression.
    mutating func either() throws(SluiceError) -> Node {
        let first = try conjunction()
        guard current.kind == .keyword(.or) else { return first }
        var parts = [try asQuery(first)]
        while take(.or) { parts.append(try asQuery(conjunction())) }
        return .query(.or(parts.flatMap { if case .or(let inner) = $0 { inner } else { [$0] } }))
    }

    private mutating func conjunction() throws(SluiceError) -> Node {
        let first = try negation()
        guard current.kind == .keyword(.and) else { return first }
        var parts = [try asQuery(first)]
        while take(.and) { parts.append(try asQuery(negation())) }
        return .query(.and(parts.flatMap { if case .and(let inner) = $0 { inner } else { [$0] } }))
    }

    private mutating func negation() throws(SluiceError) -> Node {
        if take(.not) {
            let inner = try nested { parser throws(SluiceError) in try parser.asQuery(parser.negation()) }
            return .query(.not(inner))
        }
        if take(.truePredicate) { return .query(.constant(true)) }
        if take(.falsePredicate) { return .query(.constant(false)) }
        return try comparison()
    }

    private mutating func comparison() throws(SluiceError) -> Node {
        let start = current.position
        let left = try sum()
        let position = current.position
        guard let comparison = comparisonOperator() else { return left }
        let operand = try asOperand(left, at: start)
        advance()
        var foldsCase = false
        if current.kind == .caseFlag {
            guard comparison.allowsCaseFlag else {
                throw failure("'\(comparison.rawValue)' does not take [c]", at: current.position)
            }
            foldsCase = true
            advance()
        }
        let right = try rightSide(of: comparison)
        return .query(
            .compare(
                SyntaxComparison(left: operand, comparison: comparison, foldsCase: foldsCase, right: right, position: position)))
    }

    private mutating func rightSide(of comparison: ComparisonOperator) throws(SluiceError) -> SyntaxOperand {
        let position = current.position
        switch comparison {
        case .geoWithin: return try shape()
        case .between:
            guard current.kind == .symbol(.openBrace) else { throw expected("a list '{low, high}' after BETWEEN") }
            return try asOperand(primary(), at: position)
        case .beginsWith, .endsWith, .contains, .like, .fullText: return try asOperand(primary(), at: position)
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .isIn:
            return try asOperand(sum(), at: position)
        }
    }

    private func comparisonOperator() -> ComparisonOperator? {
        switch current.kind {
        case .symbol(.equal): .equal
        case .symbol(.notEqual): .notEqual
        case .symbol(.less): .less
        case .symbol(.lessOrEqual): .lessOrEqual
        case .symbol(.greater): .greater
        case .symbol(.greaterOrEqual): .greaterOrEqual
        case .keyword(.in): .isIn
        case .keyword(.beginsWith): .beginsWith
        case .keyword(.endsWith): .endsWith
        case .keyword(.contains): .contains
        case .keyword(.like): .like
        case .keyword(.text): .fullText
        case .keyword(.between): .between
        case .keyword(.geoWithin): .geoWithin
        default: nil
        }
    }

    // MARK: Arithmetic

    private mutating func sum() throws(SluiceError) -> Node {
        try chain([.plus: .add, .minus: .subtract]) { parser throws(SluiceError) in try parser.product() }
    }

    private mutating func product() throws(SluiceError) -> Node {
        try chain([.times: .multiply, .divide: .divide]) { parser throws(SluiceError) in try parser.primary() }
    }

    private mutating func chain(
        _ operators: [Symbol: Arithmetic], _ part: (inout Parser) throws(SluiceError) -> Node
    ) throws(SluiceError) -> Node {
        let start = current.position
        var node = try part(&self)
        var length = 0
        while case .symbol(let symbol) = current.kind, let arithmetic = operators[symbol] {
            let left = try asOperand(node, at: start)
            length += 1
            guard depth + length < Limits.nestingDepth else {
                throw failure("this calculation has more than \(Limits.nestingDepth) parts", at: current.position)
            }
            advance()
            let position = current.position
            let right = try asOperand(part(&self), at: position)
            node = .operand(SyntaxOperand(kind: .arithmetic(left, arithmetic, right), position: start))
        }
        return node
    }
}

extension ComparisonOperator {
    var allowsCaseFlag: Bool {
        switch self {
        case .equal, .notEqual, .isIn, .beginsWith, .endsWith, .contains, .like: true
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .fullText, .between, .geoWithin: false
        }
    }
}
