/// Parses the part of JavaScript in which the documented functions for partitions are written.
struct FunctionParser {
    /// The deepest nesting. Sources beyond it are not understood.
    private static let mostDepth = 64

    private let items: [FunctionLexer.Item]
    private var place = 0
    private var depth = 0
    /// The names that the block declares for itself.
    private var declared: [String] = []

    private init(_ source: String) throws(FunctionProblem) { items = try FunctionLexer.items(of: source) }

    /// Returns the function that a source exports, with nothing behind it.
    static func function(in source: String) throws(FunctionProblem) -> FunctionBody {
        var parser = try FunctionParser(source)
        guard let start = parser.items.firstIndex(where: { $0.token == .name("exports") }) else {
            throw FunctionProblem("it exports no function")
        }
        parser.place = start + 1
        try parser.expect("=")
        let exported = try parser.expression()
        if case .name(let name) = exported {
            throw FunctionProblem("it exports '\(name)', and only a function that stands behind 'exports =' is read")
        }
        guard case .lambda(let body) = exported else { throw FunctionProblem("it exports no function") }
        _ = parser.skip(";")
        guard parser.current == nil else {
            throw FunctionProblem("its source has more behind the exported function, from \(parser.found) on")
        }
        return body
    }

    /// Returns an expression that is a source of its own, as in a template.
    private static func expression(in source: String) throws(FunctionProblem) -> FunctionExpression {
        var parser = try FunctionParser(source)
        let expression = try parser.expression()
        try parser.expectEnd()
        return expression
    }

    // MARK: Tokens

    private var current: FunctionToken? { place < items.count ? items[place].token : nil }

    /// `true` if the next token is the first one of its line.
    private var isAtLine: Bool { place < items.count && items[place].startsLine }

    private func isAt(_ mark: String) -> Bool { current == .mark(mark) }

    private mutating func skip(_ mark: String) -> Bool { skip(.mark(mark)) }
    private mutating func skip(word: String) -> Bool { skip(.name(word)) }

    private mutating func skip(_ token: FunctionToken) -> Bool {
        guard current == token else { return false }
        place += 1
        return true
    }

    private mutating func expect(_ mark: String) throws(FunctionProblem) {
        guard skip(mark) else { throw FunctionProblem("'\(mark)' was expected before \(found)") }
    }

    private func expectEnd() throws(FunctionProblem) {
        guard current == nil else { throw FunctionProblem("its end was expected before \(found)") }
    }

    private var found: String {
        switch current {
        case .name(let text): "'\(text)'"
        case .mark(let text): "'\(text)'"
        case .string, .template: "a text"
        case .number: "a number"
        case nil: "its end"
        }
    }

    private mutating func name() throws(FunctionProblem) -> String {
        guard case .name(let name)? = current else { throw FunctionProblem("a name was expected before \(found)") }
        place += 1
        return name
    }

    // MARK: Statements

    private mutating func block() throws(FunctionProblem) -> [FunctionStatement] {
        guard skip("{") else { return try statement() }
        let outer = declared
        declared = []
        var statements: [FunctionStatement] = []
        while !skip("}") {
            guard current != nil else { throw FunctionProblem("a block does not end") }
            statements += try statement()
        }
        if !declared.isEmpty { statements.append(.forget(declared)) }
        declared = outer
        return statements
    }

    private mutating func statement() throws(FunctionProblem) -> [FunctionStatement] {
        depth += 1
        defer { depth -= 1 }
        guard depth < Self.mostDepth else { throw FunctionProblem("it is nested too deeply") }
        if isAt("{") { return try block() }
        if skip(";") { return [] }
        guard case .name(let word)? = current else { return [.evaluate(try ended(try expression()))] }
        switch word {
        case "const", "let", "var":
            place += 1
            return try declarations(areOfBlock: word != "var")
        case "return":
            place += 1
            if isAtLine || skip(";") || isAt("}") || current == nil { return [.result(nil)] }
            return [.result(try ended(try expression()))]
        case "if":
            place += 1
            let condition = try parenthesized()
            let then = try block()
            return [.condition(condition, then, skip(word: "else") ? try block() : [])]
        case "switch":
            place += 1
            return [try choice()]
        case "break", "throw":
            place += 1
            if word == "throw" { _ = try expression() }
            try end()
            return [word == "throw" ? .fail : .leave]
        case "try":
            place += 1
            return try attempt()
        case "for", "while", "do", "function", "class": throw FunctionProblem("'\(word)' is not understood")
        default: return [try simple()]
        }
    }

    /// Reads an assignment or an expression.
    private mutating func simple() throws(FunctionProblem) -> FunctionStatement {
        let target = try expression()
        guard skip("=") else { return .evaluate(try ended(target)) }
        guard case .name(let name) = target else { throw FunctionProblem("an assignment to a member is not understood") }
        return .assign(name, try ended(try expression()))
    }

    private mutating func ended(_ expression: FunctionExpression) throws(FunctionProblem) -> FunctionExpression {
        try end()
        return expression
    }

    /// Reads the end of a statement: a semicolon, or a line break where JavaScript inserts one.
    private mutating func end() throws(FunctionProblem) {
        if skip(";") || isAt("}") || current == nil { return }
        let isContinued =
            switch current {
            case .name(let word): ["in", "instanceof"].contains(word)
            case .mark(let mark): mark != "{" && mark != "!"
            case .template: true
            default: false
            }
        guard isAtLine, !isContinued else { throw FunctionProblem("';' was expected before \(found)") }
    }

    private mutating func parenthesized() throws(FunctionProblem) -> FunctionExpression {
        try expect("(")
        let condition = try expression()
        try expect(")")
        return condition
    }

    private mutating func declarations(areOfBlock: Bool) throws(FunctionProblem) -> [FunctionStatement] {
        var statements: [FunctionStatement] = []
        repeat {
            let pattern = try pattern()
            if areOfBlock { declared += pattern.names }
            statements.append(.declare(pattern, skip("=") ? try expression() : nil))
        } while skip(",")
        try end()
        return statements
    }

    private mutating func pattern() throws(FunctionProblem) -> FunctionPattern {
        if skip("[") {
            var names: [String?] = []
            while !skip("]") {
                names.append(isAt(",") ? nil : try name())
                _ = skip(",")
            }
            return .elements(names)
        }
        guard skip("{") else { return .name(try name()) }
        var members: [FunctionPattern.Member] = []
        while !skip("}") {
            let member = try name()
            members.append(.init(member: member, name: skip(":") ? try name() : member))
            _ = skip(",")
        }
        return .members(members)
    }

    private mutating func choice() throws(FunctionProblem) -> FunctionStatement {
        let subject = try parenthesized()
        try expect("{")
        var cases: [FunctionStatement.Case] = []
        while !skip("}") {
            var label: FunctionExpression?
            if skip(word: "case") {
                label = try expression()
            } else if !skip(word: "default") {
                throw FunctionProblem("'case' was expected before \(found)")
            }
            try expect(":")
            var body: [FunctionStatement] = []
            while current != .name("case"), current != .name("default"), !isAt("}") {
                guard current != nil else { throw FunctionProblem("a 'switch' does not end") }
                body += try statement()
            }
            cases.append(.init(label: label, body: body))
        }
        return .choose(subject, cases)
    }

    /// Reads `try`. A failure in it denies, so its other parts may do nothing else.
    private mutating func attempt() throws(FunctionProblem) -> [FunctionStatement] {
        let body = try block()
        if skip(word: "catch") {
            if skip("(") {
                _ = try name()
                try expect(")")
            }
            guard try block().allSatisfy(\.denies) else { throw FunctionProblem("'catch' does more than deny") }
        }
        if skip(word: "finally") {
            guard try block().allSatisfy({ $0.logged != nil }) else { throw FunctionProblem("'finally' is not understood") }
        }
        return body
    }

    // MARK: Expressions

    private mutating func expression() throws(FunctionProblem) -> FunctionExpression {
        depth += 1
        defer { depth -= 1 }
        guard depth < Self.mostDepth else { throw FunctionProblem("it is nested too deeply") }
        if let lambda = try lambda() { return lambda }
        let condition = try binary(0)
        guard skip("?") else { return condition }
        let then = try expression()
        try expect(":")
        return .choice(condition, then, try expression())
    }

    private static let levels = [["||", "??"], ["&&"], ["===", "!==", "==", "!="], [">=", "<=", ">", "<"], ["+"]]

    private mutating func binary(_ level: Int) throws(FunctionProblem) -> FunctionExpression {
        guard level < Self.levels.count else { return try unary() }
        var left = try binary(level + 1)
        while case .mark(let mark)? = current, Self.levels[level].contains(mark) {
            place += 1
            left = .binary(mark, left, try binary(level + 1))
        }
        return left
    }

    private mutating func unary() throws(FunctionProblem) -> FunctionExpression {
        if skip("!") { return .not(try unary()) }
        if skip("-") { return .negative(try unary()) }
        if skip(word: "await") { return .await(try unary()) }
        if skip(word: "new") { return .construct(try unary()) }
        return try postfix()
    }

    private mutating func postfix() throws(FunctionProblem) -> FunctionExpression {
        var value = try primary()
        while true {
            if isAt(".") || isAt("?.") {
                let isOptional = skip("?.")
                if !isOptional { place += 1 }
                value = .member(value, try name(), isOptional: isOptional)
            } else if skip("[") {
                value = .element(value, try expression())
                try expect("]")
            } else if isAt("(") {
                value = .call(value, try arguments())
            } else {
                return value
            }
        }
    }

    private mutating func arguments() throws(FunctionProblem) -> [FunctionExpression] {
        try expect("(")
        var arguments: [FunctionExpression] = []
        while !skip(")") {
            arguments.append(try expression())
            if !isAt(")") { try expect(",") }
        }
        return arguments
    }

    private mutating func primary() throws(FunctionProblem) -> FunctionExpression {
        if skip("(") {
            let inner = try expression()
            try expect(")")
            return inner
        }
        if skip("[") {
            var elements: [FunctionExpression] = []
            while !skip("]") {
                elements.append(try expression())
                if !isAt("]") { try expect(",") }
            }
            return .array(elements)
        }
        if skip("{") { return try object() }
        guard let token = current else { throw FunctionProblem("it ends in the middle") }
        place += 1
        switch token {
        case .name(let name): return .name(name)
        case .string(let text): return .string(text)
        case .number(let number): return .number(number)
        case .template(let texts, let sources):
            var parts: [FunctionExpression] = []
            for source in sources { parts.append(try Self.expression(in: source)) }
            return .template(texts, parts)
        case .mark(let mark): throw FunctionProblem("'\(mark)' is not understood")
        }
    }

    private mutating func object() throws(FunctionProblem) -> FunctionExpression {
        var members: [String: FunctionExpression] = [:]
        while !skip("}") {
            let key: String
            if case .string(let text)? = current {
                place += 1
                key = text
            } else {
                key = try name()
            }
            members[key] = skip(":") ? try expression() : .name(key)
            if !isAt("}") { try expect(",") }
        }
        return .object(members)
    }

    /// Reads `function (x) { … }`, `(x) => …` or `x => …`; nil if something else is next.
    private mutating func lambda() throws(FunctionProblem) -> FunctionExpression? {
        let start = place
        let isAsync = skip(word: "async")
        if skip(word: "function") {
            if case .name? = current { place += 1 }
            guard let parameters = try parameters() else { throw FunctionProblem("its parameters are not understood") }
            return .lambda(FunctionBody(parameters: parameters, statements: try block(), isAsync: isAsync))
        }
        var parameters: [String]?
        if case .name(let name)? = current {
            place += 1
            parameters = [name]
        } else if isAt("(") {
            parameters = try self.parameters()
        }
        guard let parameters, skip("=>") else {
            place = start
            return nil
        }
        let statements = isAt("{") ? try block() : [.result(try expression())]
        return .lambda(FunctionBody(parameters: parameters, statements: statements, isAsync: isAsync))
    }

    private mutating func parameters() throws(FunctionProblem) -> [String]? {
        guard skip("(") else { return nil }
        var names: [String] = []
        while !skip(")") {
            guard case .name(let name)? = current else { return nil }
            place += 1
            names.append(name)
            guard isAt(",") || isAt(")") else { return nil }
            _ = skip(",")
        }
        return names
    }
}
