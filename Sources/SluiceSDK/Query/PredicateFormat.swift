import SluiceCore
import SluiceQuery

/// Translates a predicate format such as `filter("age > %@ AND name BEGINSWITH $0", …)` into text of the query language.
/// Placeholders become constants, and keywords of predicates become those of the language.
///
/// The scan is by bytes: all its delimiters are ASCII, and all other bytes belong to names or texts.
struct PredicateFormat {
    /// The text of the query language and the operators that ignore accents.
    struct Translation {
        var text = ""
        /// The byte offsets in the text of operators that ignore accents. The language has no such operators.
        var accentBlind: Set<Int> = []
    }

    private let bytes: [UInt8]
    private var position = 0
    private let arguments: [Any]
    private var nextArgument = 0
    private var text: [UInt8] = []
    private var accentBlind: Set<Int> = []
    /// The byte offset in the text of the last word or operator.
    private var lastToken = 0
    private var wasSymbol = false

    /// Translates a format with its arguments.
    /// - Throws: `queryArgument` if an argument is missing or is not a constant; `querySyntax` for an unclosed quote;
    ///   `queryUnsupported` for keywords such as `MATCHES`.
    static func translate(_ format: String, _ arguments: [Any]) throws(SluiceError) -> Translation {
        var formatter = PredicateFormat(bytes: Array(format.utf8), arguments: arguments)
        try formatter.run()
        return Translation(text: String(decoding: formatter.text, as: UTF8.self), accentBlind: formatter.accentBlind)
    }

    private init(bytes: [UInt8], arguments: [Any]) {
        self.bytes = bytes
        self.arguments = arguments
        text.reserveCapacity(bytes.count + 16 * arguments.count)
    }

    private mutating func run() throws(SluiceError) {
        while position < bytes.count {
            let byte = bytes[position]
            let isSymbol = PredicateFormat.isSymbol(byte)
            // A run of symbols, such as `>=`, is one token, so its first byte marks the operator.
            if isSymbol && !wasSymbol { lastToken = text.count }
            wasSymbol = isSymbol
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): try string(quote: byte)
            case UInt8(ascii: "%"): try placeholder()
            case UInt8(ascii: "$"): try numbered()
            case UInt8(ascii: "#"): position += 1
            case UInt8(ascii: "["): try bracket()
            case UInt8(ascii: "`"): try quotedName()
            default: if PredicateFormat.continuesWord(byte), !PredicateFormat.isDigit(byte) { try word() } else { copy() }
            }
        }
    }

    private mutating func copy() {
        text.append(bytes[position])
        position += 1
    }

    /// Copies a name in backquotes, which may be a keyword of predicates or of the language.
    private mutating func quotedName() throws(SluiceError) {
        lastToken = text.count
        copy()
        while position < bytes.count, bytes[position] != UInt8(ascii: "`") { copy() }
        guard position < bytes.count else { throw SluiceError(.querySyntax, "A name in the predicate has no closing backquote.") }
        copy()
    }

    private mutating func put(_ piece: String) { text.append(contentsOf: piece.utf8) }

    // MARK: Kinds of bytes

    private static func isSymbol(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "="), UInt8(ascii: "!"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&"), UInt8(ascii: "|"): true
        default: false
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte >= 0x80 }

    private static func continuesWord(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "@")
    }

    // MARK: Texts

    /// Translates a quoted text. A backslash makes the next character literal, except for `n`, `r` and `t`.
    private mutating func string(quote: UInt8) throws(SluiceError) {
        position += 1
        var content: [UInt8] = []
        while position < bytes.count, bytes[position] != quote {
            var byte = bytes[position]
            if byte == UInt8(ascii: "\\"), position + 1 < bytes.count {
                position += 1
                byte = PredicateFormat.meaning(ofEscaped: bytes[position])
            }
            content.append(byte)
            position += 1
        }
        guard position < bytes.count else { throw SluiceError(.querySyntax, "A text in the predicate has no end.") }
        position += 1
        let decoded = String(decoding: content, as: UTF8.self)
        // The contents of B64"…" and the like contain no escapes and stay unchanged.
        put(text.suffix(3) == [UInt8]("B64".utf8)[...] ? "\"\(decoded)\"" : RQLText.literal(.string(decoded)))
    }

    private static func meaning(ofEscaped byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): UInt8(ascii: "\n")
        case UInt8(ascii: "r"): UInt8(ascii: "\r")
        case UInt8(ascii: "t"): UInt8(ascii: "\t")
        default: byte
        }
    }

    // MARK: Brackets

    /// Translates `[cd]` after an operator, and `[%@]` and `[%K]` after a collection. Other indices are the language's and stay.
    private mutating func bracket() throws(SluiceError) {
        let content = bytes[(position + 1)...].prefix { $0 != UInt8(ascii: "]") }
        let inside = String(decoding: content, as: UTF8.self).filter { !$0.isWhitespace }
        if !inside.isEmpty, inside.allSatisfy({ "cdCD".contains($0) }) {
            position += content.count + 2
            // The operator just copied is marked by its offset, which the parser later reports as the comparison's position.
            if inside.lowercased().contains("d") { accentBlind.insert(lastToken) }
            if inside.lowercased().contains("c") { put("[c]") }
            return
        }
        guard inside == "%@" || inside == "%K" else { return copy() }
        position += content.count + 2
        let argument = try take(nextArgument, inside)
        nextArgument += 1
        switch Value(any: argument) {
        case .string("#any"): put("[*]")
        case .string(let key): put("[\(RQLText.literal(.string(key)))]")
        case .int(let index): put("[\(index)]")
        default: throw SluiceError(.queryArgument, "The argument \(argument) in brackets is neither a key nor an index.")
        }
    }

    // MARK: Arguments

    /// Translates `%@`, `%K`, `%d` and its longer forms, and `%f`. `%K` is inserted as it is.
    private mutating func placeholder() throws(SluiceError) {
        let start = position
        position += 1
        while position < bytes.count, PredicateFormat.isLetter(bytes[position]) || bytes[position] == UInt8(ascii: "@") {
            position += 1
            if PredicateFormat.endsPlaceholder(bytes[position - 1]) { break }
        }
        let kind = bytes[start..<position]
        let argument = try take(nextArgument, String(decoding: kind, as: UTF8.self))
        nextArgument += 1
        if kind.elementsEqual("%K".utf8) {
            put("\(argument)".split(separator: ".").map { PredicateFormat.quoted(String($0)) }.joined(separator: "."))
        } else {
            try put(argument: argument, String(decoding: kind, as: UTF8.self))
        }
    }

    private static func endsPlaceholder(_ byte: UInt8) -> Bool { "@KdifuDg".utf8.contains(byte) }

    /// Translates `$0` and so on. Any other text after a dollar sign is a variable's name and is copied.
    private mutating func numbered() throws(SluiceError) {
        let digits = bytes[(position + 1)...].prefix { PredicateFormat.isDigit($0) }
        guard let index = Int(String(decoding: digits, as: UTF8.self)) else {
            copy()
            while position < bytes.count, PredicateFormat.continuesWord(bytes[position]) { copy() }
            return
        }
        position += 1 + digits.count
        try put(argument: try take(index, "$\(index)"), "$\(index)")
    }

    private func take(_ index: Int, _ placeholder: @autoclosure () -> String) throws(SluiceError) -> Any {
        guard arguments.indices.contains(index) else {
            throw SluiceError(.queryArgument, "The placeholder \(placeholder()) has no argument; there are \(arguments.count).")
        }
        return arguments[index]
    }

    private mutating func put(argument: Any, _ placeholder: @autoclosure () -> String) throws(SluiceError) {
        if let constant = RQLText.constant(argument) { return put(constant) }
        guard let shape = argument as? any RealmGeoSpatial else {
            throw SluiceError(.queryArgument, "The argument \(argument) of \(placeholder()) is not a value that a query can hold.")
        }
        // The `IN` before the argument is replaced: the language has GEOWITHIN instead.
        text.removeLast(text.count - lastToken)
        put("GEOWITHIN \(shape._queryText)")
    }

    // MARK: Words

    /// Copies a word, or its counterpart in the query language.
    private mutating func word() throws(SluiceError) {
        lastToken = text.count
        let start = position
        while position < bytes.count, PredicateFormat.continuesWord(bytes[position]) { position += 1 }
        let word = bytes[start..<position]
        switch word.count {
        // The length range of the words that need translation or are rejected.
        case 2...10:
            let word = String(decoding: word, as: UTF8.self)
            if PredicateFormat.refused.contains(word) {
                throw SluiceError(.queryUnsupported, "\(word) is not supported in a predicate.", fix: "Filter with a block instead.")
            }
            put(PredicateFormat.counterparts[word] ?? word)
        default: text.append(contentsOf: word)
        }
    }

    private static let counterparts = ["YES": "true", "NO": "false", "@allKeys": "@keys", "@allValues": "@values"]
    private static let refused: Set = ["MATCHES", "matches", "CAST", "FUNCTION", "TERNARY"]

    /// The name of a property, between backquotes if predicates or the query language have such a word.
    static func quoted(_ name: String) -> String {
        if name.hasPrefix("@") { return name }
        return counterparts[name] != nil || refused.contains(name) ? "`\(name)`" : QueryName.quoted(name)
    }
}
