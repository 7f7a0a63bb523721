import SluiceCore

/// Builds the syntax tree by recursive descent. The precedence is, loosest first: OR, AND, + -, * /, comparison, NOT.
///
/// A parenthesis may contain a query or an expression, and only the token after it decides. Every level below OR therefore returns a `Node`
/// that is either, and the caller requires the kind that it needs.
struct Parser {
    let diagnostic: QueryDiagnostic
    /// The bytes of the text. Tokens are ranges of them.
    let source: [UInt8]
    let tokens: [Token]
    var index = 0
    var depth = 0

    enum Node {
        case query(SyntaxQuery)
        case operand(SyntaxOperand)
    }

    static func parse(_ source: String) throws(SluiceError) -> SyntaxTree {
        var lexer = Lexer(source)
        let tokens = try lexer.tokens()
        var parser = Parser(diagnostic: QueryDiagnostic(source: source), source: lexer.bytes, tokens: tokens)
        let root = try parser.query()
        let suffixes = try parser.suffixes()
        guard case .end = parser.current.kind else { throw parser.expected("AND, OR, SORT, DISTINCT, LIMIT or the end of the query") }
        let tree = SyntaxTree(root: root, suffixes: suffixes)
        if let place = DepthCheck.excess(in: tree) { throw parser.tooDeep(at: place) }
        return tree
    }

    // MARK: Tokens

    var current: Token { tokens[index] }

    var position: SourcePosition { SourcePosition(Int(tokens[index].start)) }

    mutating func advance() { if index < tokens.count - 1 { index += 1 } }

    func sees(_ symbol: Symbol) -> Bool { tokens[index].code == symbol.rawValue }

    func sees(_ keyword: Keyword) -> Bool { tokens[index].code == keyword.rawValue }

    mutating func take(_ symbol: Symbol) -> Bool {
        guard sees(symbol) else { return false }
        advance()
        return true
    }

    mutating func take(_ keyword: Keyword) -> Bool {
        guard sees(keyword) else { return false }
        advance()
        return true
    }

    mutating func expect(_ symbol: Symbol) throws(SluiceError) {
        guard take(symbol) else { throw expected("'\(symbol.text)'") }
    }

    func written(_ token: Token, atMost bytes: Int = .max) -> String {
        String(decoding: source[Int(token.start)..<Int(token.end)].prefix(bytes), as: UTF8.self)
    }

    func expected(_ what: String) -> SluiceError {
        if case .end = current.kind { return failure("expected \(what), the query ends", at: position) }
        let shown = written(current, atMost: 240).unicodeScalars.prefix(60)
        return failure("expected \(what), found '\(QueryDiagnostic.visible(shown))'", at: position)
    }

    func failure(_ sentence: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.querySyntax, sentence, at: position)
    }

    private func tooDeep(at position: SourcePosition) -> SluiceError {
        failure("the query is nested deeper than \(Limits.nestingDepth) levels", at: position)
    }

    /// Counts a level of nesting during `body`, so that hostile text cannot exhaust the stack.
    mutating func nested<R>(_ body: (inout Parser) throws(SluiceError) -> R) throws(SluiceError) -> R {
        guard depth < Limits.nestingDepth else {
            throw tooDeep(at: position)
        }
        depth += 1
        defer { depth -= 1 }
        return try body(&self)
    }

    // MARK: Queries

    mutating func query() throws(SluiceError) -> SyntaxQuery {
        let node = try either()
        return try asQuery(node)
    }

    /// Returns the node as a query. An expression alone is an error.
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

    /// Reads a query or, inside parentheses, an expression.
    mutating func either() throws(SluiceError) -> Node {
        let first = try conjunction()
        guard sees(.or) else { return first }
        var parts: [SyntaxQuery] = []
        let start = try asQuery(first)
        if case .or(let inner) = start.kind { parts = inner } else { parts = [start] }
        while take(.or) {
            let node = try conjunction()
            let part = try asQuery(node)
            if case .or(let inner) = part.kind { parts += inner } else { parts.append(part) }
        }
        return .query(SyntaxQuery(.or(parts), at: parts[0].position))
    }

    private mutating func conjunction() throws(SluiceError) -> Node {
        let first = try negation()
        guard sees(.and) else { return first }
        var parts: [SyntaxQuery] = []
        let start = try asQuery(first)
        if case .and(let inner) = start.kind { parts = inner } else { parts = [start] }
        while take(.and) {
            let node = try negation()
            let part = try asQuery(node)
            if case .and(let inner) = part.kind { parts += inner } else { parts.append(part) }
        }
        return .query(SyntaxQuery(.and(parts), at: parts[0].position))
    }

    private mutating func negation() throws(SluiceError) -> Node {
        let start = position
        if take(.not) {
            // A parenthesis after it counts for both: "!(" is one level.
            let inner = sees(.openParenthesis) ? try negation() : try nested { parser throws(SluiceError) in try parser.negation() }
            return .query(SyntaxQuery(.not(try asQuery(inner)), at: start))
        }
        if take(.truePredicate) { return .query(SyntaxQuery(.constant(true), at: start)) }
        if take(.falsePredicate) { return .query(SyntaxQuery(.constant(false), at: start)) }
        return try comparison()
    }

    private mutating func comparison() throws(SluiceError) -> Node {
        let start = position
        let isGrouped = sees(.openParenthesis)
        let left = try sum()
        let place = position
        guard let comparison = comparisonOperator() else { return left }
        let operand = try asOperand(left, at: start)
        try check(operand, isGrouped: isGrouped, at: start, leftOf: comparison)
        advance()
        var foldsCase = false
        if case .caseFlag = current.kind {
            guard comparison.allowsCaseFlag else { throw failure("'\(comparison.rawValue)' does not take [c]", at: position) }
            foldsCase = true
            advance()
        }
        let right = try rightSide(of: comparison)
        let parts = SyntaxComparison(left: operand, comparison: comparison, foldsCase: foldsCase, right: right, position: place)
        return .query(SyntaxQuery(.compare(parts), at: start))
    }

    /// Checks the left side. Only equality, IN and orders compare expressions; other operators take values.
    private func check(
        _ left: SyntaxOperand, isGrouped: Bool, at start: SourcePosition, leftOf comparison: ComparisonOperator
    ) throws(SluiceError) {
        guard !comparison.takesExpressions else { return }
        if case .arithmetic = left.kind { throw failure("'\(comparison.rawValue)' does not take a calculation", at: start) }
        if isGrouped { throw failure("'\(comparison.rawValue)' takes a value without parentheses", at: start) }
        guard comparison == .geoWithin else { return }
        guard case .path = left.kind else { throw failure("GEOWITHIN takes a property on its left", at: start) }
    }

    private mutating func rightSide(of comparison: ComparisonOperator) throws(SluiceError) -> SyntaxOperand {
        let start = position
        switch comparison {
        case .geoWithin: return try shape()
        case .between:
            let quantifier = quantifier()
            guard sees(.openBrace) else { throw expected("a list '{low, high}' after BETWEEN") }
            return try list(quantifier, at: start)
        case .beginsWith, .endsWith, .contains, .like, .fullText: return try value()
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual, .isIn:
            return try asOperand(sum(), at: start)
        }
    }

    private func comparisonOperator() -> ComparisonOperator? {
        let code = tokens[index].code
        return Symbol(rawValue: code)?.comparison ?? Keyword(rawValue: code)?.comparison
    }

    // MARK: Arithmetic

    private mutating func sum() throws(SluiceError) -> Node {
        try chain(Parser.additive) { parser throws(SluiceError) in try parser.product() }
    }

    private mutating func product() throws(SluiceError) -> Node {
        try chain(Parser.multiplicative) { parser throws(SluiceError) in try parser.primary() }
    }

    private static func additive(_ symbol: Symbol) -> Arithmetic? { symbol == .plus ? .add : symbol == .minus ? .subtract : nil }

    private static func multiplicative(_ symbol: Symbol) -> Arithmetic? {
        symbol == .times ? .multiply : symbol == .divide ? .divide : nil
    }

    /// Reads operators of one precedence, grouped from the left. The tree is as deep as the chain is long, so the length counts as depth.
    private mutating func chain(
        _ arithmetic: (Symbol) -> Arithmetic?, _ part: (inout Parser) throws(SluiceError) -> Node
    ) throws(SluiceError) -> Node {
        let start = position
        var node = try part(&self)
        var length = 0
        while let symbol = Symbol(rawValue: tokens[index].code), let arithmetic = arithmetic(symbol) {
            let left = try asOperand(node, at: start)
            length += 1
            guard depth + length <= Limits.nestingDepth else {
                throw failure("this calculation has more than \(Limits.nestingDepth) parts", at: position)
            }
            advance()
            let place = position
            let right = try asOperand(part(&self), at: place)
            node = .operand(SyntaxOperand(kind: .arithmetic(left, arithmetic, right), position: start))
        }
        return node
    }
}

extension Symbol {
    fileprivate var comparison: ComparisonOperator? {
        switch self {
        case .equal: .equal
        case .notEqual: .notEqual
        case .less: .less
        case .lessOrEqual: .lessOrEqual
        case .greater: .greater
        case .greaterOrEqual: .greaterOrEqual
        default: nil
        }
    }
}

extension Keyword {
    fileprivate var comparison: ComparisonOperator? {
        switch self {
        case .in: .isIn
        case .beginsWith: .beginsWith
        case .endsWith: .endsWith
        case .contains: .contains
        case .like: .like
        case .text: .fullText
        case .between: .between
        case .geoWithin: .geoWithin
        default: nil
        }
    }
}

extension ComparisonOperator {
    var allowsCaseFlag: Bool {
        switch self {
        case .equal, .notEqual, .isIn, .beginsWith, .endsWith, .contains, .like: true
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .fullText, .between, .geoWithin: false
        }
    }

    /// `true` if the operator permits calculations and parentheses.
    var takesExpressions: Bool {
        switch self {
        case .equal, .notEqual, .isIn, .less, .lessOrEqual, .greater, .greaterOrEqual: true
        case .beginsWith, .endsWith, .contains, .like, .fullText, .between, .geoWithin: false
        }
    }
}
