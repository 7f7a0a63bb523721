/// A token of JavaScript.
enum FunctionToken: Hashable {
    case name(String)
    case number(Double)
    case string(String)
    /// The texts of a template literal, and the sources of the expressions between them.
    case template([String], [String])
    case mark(String)
}

/// An error in the source of a function, or a part of JavaScript beyond the documented shapes.
struct FunctionProblem: Error {
    var reason: String

    init(_ reason: String) { self.reason = reason }
}

/// Splits the source of a function into tokens. Regular expressions are no tokens.
struct FunctionLexer {
    private static let marks = [
        "===", "!==", "...", "?.", "=>", "==", "!=", "&&", "||", "??", ">=", "<=", "{", "}", "(", ")", "[", "]", ";", ",", ".", ":", "?",
        "=", "!", "+", "-", "<", ">",
    ].map { Array($0) }

    private let text: [Character]
    private var place = 0

    private init(_ source: String) { text = Array(source) }

    static func tokens(of source: String) throws(FunctionProblem) -> [FunctionToken] {
        var lexer = FunctionLexer(source)
        var tokens: [FunctionToken] = []
        while let token = try lexer.next() { tokens.append(token) }
        return tokens
    }

    private func starts(with mark: [Character]) -> Bool { text[place...].starts(with: mark) }

    private mutating func next() throws(FunctionProblem) -> FunctionToken? {
        skipBlanks()
        guard place < text.count else { return nil }
        let first = text[place]
        if first == "\"" || first == "'" { return .string(try quoted(first)) }
        if first == "`" { return try template() }
        if first.isLetter || first == "_" || first == "$" { return .name(take { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }) }
        if first.isNumber {
            let digits = take { $0.isNumber || $0 == "." }
            guard let number = Double(digits) else { throw FunctionProblem("'\(digits)' is no number") }
            return .number(number)
        }
        guard let mark = Self.marks.first(where: { starts(with: $0) }) else { throw FunctionProblem("'\(first)' is not understood") }
        place += mark.count
        return .mark(String(mark))
    }

    private mutating func skipBlanks() {
        while place < text.count {
            if text[place].isWhitespace {
                place += 1
            } else if starts(with: ["/", "/"]) {
                while place < text.count, !text[place].isNewline { place += 1 }
            } else if starts(with: ["/", "*"]) {
                place += 2
                while place < text.count, !starts(with: ["*", "/"]) { place += 1 }
                place += 2
            } else {
                return
            }
        }
    }

    private mutating func take(while isPart: (Character) -> Bool) -> String {
        let start = place
        while place < text.count, isPart(text[place]) { place += 1 }
        return String(text[start..<place])
    }

    private mutating func quoted(_ quote: Character) throws(FunctionProblem) -> String {
        place += 1
        var content = ""
        while place < text.count, text[place] != quote {
            content.append(try character())
        }
        guard place < text.count else { throw FunctionProblem("a text does not end") }
        place += 1
        return content
    }

    /// Reads a character of a text, which a backslash may stand before.
    private mutating func character() throws(FunctionProblem) -> Character {
        defer { place += 1 }
        guard text[place] == "\\" else { return text[place] }
        place += 1
        guard place < text.count else { throw FunctionProblem("a text does not end") }
        switch text[place] {
        case "n": return "\n"
        case "t": return "\t"
        case "\\", "'", "\"", "`", "$": return text[place]
        default: throw FunctionProblem("'\\\(text[place])' in a text is not understood")
        }
    }

    private mutating func template() throws(FunctionProblem) -> FunctionToken {
        place += 1
        var texts = [""]
        var sources: [String] = []
        while place < text.count, text[place] != "`" {
            if starts(with: ["$", "{"]) {
                place += 2
                sources.append(take { $0 != "}" })
                place += 1
                texts.append("")
            } else {
                texts[texts.count - 1].append(try character())
            }
        }
        guard place < text.count else { throw FunctionProblem("a text does not end") }
        place += 1
        return .template(texts, sources)
    }
}
