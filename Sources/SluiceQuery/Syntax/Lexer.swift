import SluiceCore

/// Splits a query's text into tokens. The longest match wins, and a literal wins over a word of equal length.
struct Lexer {
    let source: String
    let bytes: [UInt8]
    var position = 0

    init(_ source: String) {
        self.source = source
        bytes = Array(source.utf8)
    }

    /// Returns all tokens of the text. The last one is `.end`.
    mutating func tokens() throws(SluiceError) -> [Token] {
        var tokens: [Token] = []
        tokens.reserveCapacity(bytes.count / 4 + 1)
        while true {
            let token = try next()
            tokens.append(token)
            if case .end = token.kind { return tokens }
        }
    }

    private mutating func next() throws(SluiceError) -> Token {
        while let byte = peek(), byte == 32 || byte == 9 || byte == 10 || byte == 13 { position += 1 }
        let start = position
        guard let byte = peek() else { return Token(kind: .end, start: start, end: start) }
        guard let kind = try kind(byte) else {
            throw failure("the character '\(character(at: start))' has no meaning here", at: start)
        }
        return Token(kind: kind, start: start, end: position)
    }

    private mutating func kind(_ byte: UInt8) throws(SluiceError) -> TokenKind? {
        switch Unicode.Scalar(byte) {
        case "\"", "'": return try string(quote: byte)
        case "0"..."9":
            if let date = try calendarTimestamp() { return date }
            return try number()
        case "+", "-", ".": return try signed(byte) ?? symbol(byte)
        case "@": return try meta()
        case "`": return try quotedName()
        case "T", "B", "u", "o", "L":
            if let literal = try prefixed(byte) { return literal }
            return try word(byte)
        default: return Lexer.startsName(byte) ? try word(byte) : symbol(byte)
        }
    }

    /// Reads a token that begins with a sign or a point and is not a symbol.
    private mutating func signed(_ byte: UInt8) throws(SluiceError) -> TokenKind? {
        guard let next = peek(1) else { return nil }
        if Lexer.isDigit(next) || next == UInt8(ascii: ".") { return try number() }
        return byte != UInt8(ascii: ".") && Lexer.isLetter(next) ? signedWord(byte) : nil
    }

    func peek(_ ahead: Int = 0) -> UInt8? {
        position + ahead < bytes.count ? bytes[position + ahead] : nil
    }

    func failure(_ sentence: String, at offset: Int) -> SluiceError {
        QueryDiagnostic(source: source).error(.querySyntax, sentence, at: SourcePosition(offset))
    }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func character(at offset: Int) -> String {
        let first = String(decoding: bytes[offset...].prefix(4), as: UTF8.self).unicodeScalars.first.map { [$0] } ?? []
        return first.contains { $0.value < 32 || $0.value == 127 } ? "U+00" + hexadecimal(bytes[offset]) : QueryDiagnostic.visible(first)
    }

    private func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.utf8.count < 2 ? "0" + digits : digits
    }

    // MARK: Symbols

    private mutating func symbol(_ byte: UInt8) -> TokenKind? {
        if byte == UInt8(ascii: "["), peek(1) == UInt8(ascii: "c"), peek(2) == UInt8(ascii: "]") {
            position += 3
            return .caseFlag
        }
        if let next = peek(1), let pair = Lexer.pair(byte, next) {
            position += 2
            return pair
        }
        guard let single = Lexer.single(byte) else { return nil }
        position += 1
        return single
    }

    private static func pair(_ first: UInt8, _ second: UInt8) -> TokenKind? {
        switch (Unicode.Scalar(first), Unicode.Scalar(second)) {
        case ("&", "&"): .keyword(.and)
        case ("|", "|"): .keyword(.or)
        case ("=", "="): .symbol(.equal)
        case ("!", "="), ("<", ">"): .symbol(.notEqual)
        case ("<", "="), ("=", "<"): .symbol(.lessOrEqual)
        case (">", "="), ("=", ">"): .symbol(.greaterOrEqual)
        default: nil
        }
    }

    private static func single(_ byte: UInt8) -> TokenKind? {
        switch Unicode.Scalar(byte) {
        case "=": .symbol(.equal)
        case "!": .keyword(.not)
        case "<": .symbol(.less)
        case ">": .symbol(.greater)
        case "(": .symbol(.openParenthesis)
        case ")": .symbol(.closeParenthesis)
        case "{": .symbol(.openBrace)
        case "}": .symbol(.closeBrace)
        case "[": .symbol(.openBracket)
        case "]": .symbol(.closeBracket)
        case ",": .symbol(.comma)
        case ".": .symbol(.dot)
        case "+": .symbol(.plus)
        case "-": .symbol(.minus)
        case "*": .symbol(.times)
        case "/": .symbol(.divide)
        default: nil
        }
    }

    // MARK: Words

    private mutating func meta() throws(SluiceError) -> TokenKind {
        var end = position + 1
        while end < bytes.count, Lexer.isLetter(bytes[end]) { end += 1 }
        let word = text(position..<end)
        guard let meta = word == "@size" ? .count : MetaWord(rawValue: word) else {
            throw failure(
                "there is no '\(word)'; these exist: @count @size @max @min @sum @avg @links @type @keys @values",
                at: position)
        }
        position = end
        return .meta(meta)
    }

    private mutating func word(_ byte: UInt8) throws(SluiceError) -> TokenKind {
        let start = position
        while position < bytes.count, Lexer.continuesName(bytes[position]) { position += 1 }
        if peek() == UInt8(ascii: "\\"), peek(1).flatMap(Lexer.escapedBlank) != nil { return .name(escapedName(from: start)) }
        if byte == UInt8(ascii: "$"), let argument = try argument(start..<position) { return argument }
        let word = text(start..<position)
        guard Keyword.mayBegin(with: byte, length: position - start) else { return .name(word) }
        return Lexer.constant(word) ?? Keyword(spelling: word).map { .keyword($0) } ?? .name(word)
    }

    /// Reads a name between backquotes, which may be a word of the language. Realm's language has no such names.
    private mutating func quotedName() throws(SluiceError) -> TokenKind {
        let start = position + 1
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "`")) else {
            throw failure("this name has no closing backquote", at: position)
        }
        guard end > start, bytes[start..<end].allSatisfy({ $0 >= 32 && $0 != 127 }) else {
            throw failure("a name between backquotes has characters, and none for control", at: position)
        }
        position = end + 1
        return .name(text(start..<end))
    }

    /// Reads a name with blanks, which no keyword has.
    private mutating func escapedName(from start: Int) -> String {
        var name = Array(bytes[start..<position])
        while let byte = peek() {
            if byte == UInt8(ascii: "\\"), let blank = peek(1).flatMap(Lexer.escapedBlank) {
                name.append(blank)
                position += 2
            } else if Lexer.continuesName(byte) {
                name.append(byte)
                position += 1
            } else {
                break
            }
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// Reads `$12` or `$K12`.
    private func argument(_ range: Range<Int>) throws(SluiceError) -> TokenKind? {
        let isPath = range.count > 1 && bytes[range.lowerBound + 1] == UInt8(ascii: "K")
        let digits = range.dropFirst(isPath ? 2 : 1)
        guard !digits.isEmpty, digits.allSatisfy({ Lexer.isDigit(bytes[$0]) }) else { return nil }
        guard let number = Int32(text(digits)) else {
            throw failure("there cannot be so many arguments", at: range.lowerBound)
        }
        return isPath ? .pathArgument(Int(number)) : .argument(Int(number))
    }

    static func constant(_ word: String) -> TokenKind? {
        switch word {
        case "true", "TRUE": return .literal(.bool(true))
        case "false", "FALSE": return .literal(.bool(false))
        default: break
        }
        return switch word.lowercasedASCII {
        case "null", "nil": .literal(.null)
        case "inf", "infinity": .literal(.infinity(negative: false))
        case "nan": .literal(.nan)
        default: nil
        }
    }
}

extension Lexer {
    static func isDigit(_ byte: UInt8) -> Bool { byte >= 48 && byte <= 57 }
    static func isLetter(_ byte: UInt8) -> Bool { (byte | 32) >= 97 && (byte | 32) <= 122 }
    static func isHexDigit(_ byte: UInt8) -> Bool { isDigit(byte) || ((byte | 32) >= 97 && (byte | 32) <= 102) }

    static func startsName(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte >= 0x80
    }

    static func continuesName(_ byte: UInt8) -> Bool { startsName(byte) || isDigit(byte) || byte == UInt8(ascii: "-") }

    static func escapedBlank(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: " "): 32
        case UInt8(ascii: "n"): 10
        case UInt8(ascii: "r"): 13
        case UInt8(ascii: "t"): 9
        default: nil
        }
    }
}
