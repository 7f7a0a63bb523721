import SluiceCore

/// Turns a predicate in the format of `filter("age > %@ AND name BEGINSWITH $0", …)` into a text of the query language:
/// placeholders are replaced by constants, words that only predicates have by those of the language.
struct PredicateFormat {
    /// What a format becomes.
    struct Translation {
        var text = ""
        /// Where the operators stand, in bytes of the text, that ignore accents: the language has no such operators.
        var accentBlind: Set<Int> = []
    }

    private let characters: [Character]
    private var position = 0
    private let arguments: [Any]
    private var nextArgument = 0
    private var result = Translation()
    /// Where the last word or operator begins in the text.
    private var lastToken = 0
    private var wasSymbol = false

    /// - Throws: `queryArgument` when arguments are missing or no constants.
    static func translate(_ format: String, _ arguments: [Any]) throws(SluiceError) -> Translation {
        var formatter = PredicateFormat(characters: Array(format), arguments: arguments)
        try formatter.run()
        return formatter.result
    }

    private init(characters: [Character], arguments: [Any]) {
        self.characters = characters
        self.arguments = arguments
    }

    private mutating func run() throws(SluiceError) {
        while position < characters.count {
            let character = characters[position]
            let isSymbol = "=!<>&|".contains(character)
            if isSymbol && !wasSymbol { lastToken = result.text.utf8.count }
            wasSymbol = isSymbol
            switch character {
            case "\"", "'": try string(quote: character)
            case "%": try placeholder()
            case "$": try numbered()
            case "#": position += 1
            case "[": try bracket()
            default:
                if character.isLetter || character == "_" || character == "@" { try word() } else { copy() }
            }
        }
    }

    private mutating func copy() {
        result.text.append(characters[position])
        position += 1
    }

    // MARK: Texts

    /// A text in quotes; a backslash takes the meaning of the next character away, but for `n`, `r` and `t`.
    private mutating func string(quote: Character) throws(SluiceError) {
        position += 1
        var content = ""
        while position < characters.count, characters[position] != quote {
            var character = characters[position]
            if character == "\\", position + 1 < characters.count {
                position += 1
                character = PredicateFormat.escapes[characters[position]] ?? characters[position]
            }
            content.append(character)
            position += 1
        }
        guard position < characters.count else { throw SluiceError(.querySyntax, "A text in the predicate has no end.") }
        position += 1
        // The contents of B64"…" and the like have nothing to escape and stay as they are.
        let isPrefixed = result.text.hasSuffix("B64")
        result.text += isPrefixed ? "\"\(content)\"" : RQLText.literal(.string(content))
    }

    private static let escapes: [Character: Character] = ["n": "\n", "r": "\r", "t": "\t"]

    // MARK: Brackets

    /// `[cd]` behind an operator, `[%@]` and `[%K]` behind a collection; other indices are the language's too.
    private mutating func bracket() throws(SluiceError) {
        let content = characters[(position + 1)...].prefix { $0 != "]" }
        let text = String(content).filter { !$0.isWhitespace }
        if !text.isEmpty, text.allSatisfy({ "cdCD".contains($0) }) {
            position += content.count + 2
            if text.lowercased().contains("d") { result.accentBlind.insert(lastToken) }
            if text.lowercased().contains("c") { result.text += "[c]" }
            return
        }
        guard text == "%@" || text == "%K" else { return copy() }
        position += content.count + 2
        let argument = try take(nextArgument, text)
        nextArgument += 1
        switch Value(any: argument) {
        case .string("#any"): result.text += "[*]"
        case .string(let key): result.text += "[\(RQLText.literal(.string(key)))]"
        case .int(let index): result.text += "[\(index)]"
        default: throw SluiceError(.queryArgument, "The argument \(argument) in brackets is no key and no index.")
        }
    }

    // MARK: Arguments

    /// `%@`, `%K`, `%d` and its longer forms, `%f`.
    private mutating func placeholder() throws(SluiceError) {
        position += 1
        var kind = ""
        while position < characters.count, characters[position].isLetter || characters[position] == "@" {
            kind.append(characters[position])
            position += 1
            if "@KdifuDg".contains(kind.last ?? " ") { break }
        }
        let argument = try take(nextArgument, "%\(kind)")
        nextArgument += 1
        if kind == "K" { result.text += "\(argument)" } else { try put(argument, "%\(kind)") }
    }

    /// `$0`; anything else that begins with a dollar sign is a name.
    private mutating func numbered() throws(SluiceError) {
        let digits = characters[(position + 1)...].prefix { $0.isNumber }
        guard let index = Int(String(digits)) else {
            copy()
            while position < characters.count, PredicateFormat.continuesWord(characters[position]) { copy() }
            return
        }
        position += 1 + digits.count
        try put(try take(index, "$\(index)"), "$\(index)")
    }

    private func take(_ index: Int, _ placeholder: String) throws(SluiceError) -> Any {
        guard arguments.indices.contains(index) else {
            throw SluiceError(.queryArgument, "The placeholder \(placeholder) has no argument; there are \(arguments.count).")
        }
        return arguments[index]
    }

    private mutating func put(_ argument: Any, _ placeholder: String) throws(SluiceError) {
        if let shape = argument as? any RealmGeoSpatial {
            // The operator before it is an IN, which the language calls otherwise.
            result.text = String(decoding: Array(result.text.utf8).prefix(lastToken), as: UTF8.self) + "GEOWITHIN \(shape._queryText)"
            return
        }
        guard let text = RQLText.constant(argument) else {
            throw SluiceError(.queryArgument, "The argument \(argument) of \(placeholder) is no value that a query can hold.")
        }
        result.text += text
    }

    // MARK: Words

    private static func continuesWord(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || "_@".contains(character)
    }

    /// Copies a word, or its counterpart in the query language.
    private mutating func word() throws(SluiceError) {
        lastToken = result.text.utf8.count
        var word = ""
        while position < characters.count, PredicateFormat.continuesWord(characters[position]) {
            word.append(characters[position])
            position += 1
        }
        switch word {
        case "YES": result.text += "true"
        case "NO": result.text += "false"
        case "@allKeys": result.text += "@keys"
        case "@allValues": result.text += "@values"
        case "MATCHES", "matches", "CAST", "FUNCTION", "TERNARY":
            throw SluiceError(.queryUnsupported, "\(word) is not supported in a predicate.", fix: "Filter with a block instead.")
        default: result.text += word
        }
    }
}
