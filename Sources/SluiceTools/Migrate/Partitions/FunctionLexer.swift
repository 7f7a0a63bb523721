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
    /// A token, and whether a line break stands before it.
    struct Item: Hashable {
        var token: FunctionToken
        var startsLine: Bool
    }

    private static let lineEnds: Set<Character> = ["\n", "\r", "\r\n", "\u{2028}", "\u{2029}"]
    private static let marks = [
        "===", "!==", "...", "?.", "=>", "==", "!=", "&&", "||", "??", ">=", "<=", "{", "}", "(", ")", "[", "]", ";", ",", ".", ":", "?",
        "=", "!", "+", "-", "<", ">",
    ].map { Array($0) }

    private let text: [Character]
    private var place = 0
    /// `true` if a line has ended since the last token.
    private var startsLine = false

    private init(_ source: String) { text = Array(source) }

    static func items(of source: String) throws(FunctionProblem) -> [Item] {
        var lexer = FunctionLexer(source)
        var items: [Item] = []
        while let token = try lexer.next() { items.append(Item(token: token, startsLine: lexer.startsLine)) }
        return items
    }

    private func starts(with mark: [Character]) -> Bool { text[place...].starts(with: mark) }

    private mutating func next() throws(FunctionProblem) -> FunctionToken? {
        let start = place
        skipBlanks()
        startsLine = text[start..<min(place, text.count)].contains { Self.lineEnds.contains($0) }
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
                while place < text.count, !Self.lineEnds.contains(text[place]) { place += 1 }
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
