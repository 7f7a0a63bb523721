import SluiceCore

/// Cuts a query's text into tokens: the longest match wins, and of equally long ones a literal before a word.
struct Lexer {
    let source: String
    let bytes: [UInt8]
    var position = 0

    init(_ source: String) {
        self.source = source
        bytes = Array(source.utf8)
    }

    static func tokens(of source: String) throws(SluiceError) -> [Token] {
        var lexer = Lexer(source)
        var tokens: [Token] = []
        while true {
            let token = try lexer.next()
            tokens.append(token)
            if token.kind == .end { return tokens }
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
        if let literal = try literal(byte) { return literal }
        if let meta = try meta(byte) { return meta }
        return word(byte) ?? symbol(byte)
    }

    func peek(_ ahead: Int = 0) -> UInt8? {
        position + ahead < bytes.count ? bytes[position + ahead] : nil
    }

    func failure(_ sentence: String, at offset: Int) -> SluiceError {
        QueryDiagnostic(source: source).error(.querySyntax, sentence, at: SourcePosition(offset))
    }

    func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func character(at offset: Int) -> Character {
        String(decoding: bytes[offset...].prefix(32), as: UTF8.self).first ?? "?"
    }

    // MARK: Symbols

    private static let pairs: [String: TokenKind] = [
        "&&": .keyword(.and), "||": .keyword(.or), "==": .symbol(.equal), "!=": .symbol(.notEqual),
        "<>": .symbol(.notEqual), "<=": .symbol(.lessOrEqual), "=<": .symbol(.lessOrEqual),
        ">=": .symbol(.greaterOrEqual), "=>": .symbol(.greaterOrEqual),
    ]

    private mutating func symbol(_ byte: UInt8) -> TokenKind? {
        if byte == UInt8(ascii: "["), peek(1) == UInt8(ascii: "c"), peek(2) == UInt8(ascii: "]") {
            position += 3
            return .caseFlag
        }
        if peek(1) != nil, let pair = Lexer.pairs[text(position..<position + 2)] {
            position += 2
            return pair
        }
        let kind: TokenKind? =
            switch byte {
            case UInt8(ascii: "="): .symbol(.equal)
            case UInt8(ascii: "!"): .keyword(.not)
            default: Symbol(rawValue: text(position..<position + 1)).map { .symbol($0) }
            }
        if kind != nil { position += 1 }
        return kind
    }

    // MARK: Words

    private mutating func meta(_ byte: UInt8) throws(SluiceError) -> TokenKind? {
        guard byte == UInt8(ascii: "@") else { return nil }
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

    private mutating func word(_ byte: UInt8) -> TokenKind? {
        guard Lexer.startsName(byte) else { return nil }
        let start = position
        var name: [UInt8] = []
        var isEscaped = false
        while let byte = peek() {
            if byte == UInt8(ascii: "\\"), let blank = peek(1).flatMap(Lexer.escapedBlank) {
                name.append(blank)
                isEscaped = true
                position += 2
            } else if Lexer.continuesName(byte) {
                name.append(byte)
                position += 1
            } else {
                break
            }
        }
        let word = String(decoding: name, as: UTF8.self)
        if isEscaped { return .name(word) }
        return argument(start..<position) ?? Lexer.constant(word) ?? Keyword(spelling: word).map { .keyword($0) } ?? .name(word)
    }

    /// `$12` and `$K12`.
    private func argument(_ range: Range<Int>) -> TokenKind? {
        guard bytes[range.lowerBound] == UInt8(ascii: "$"), range.count > 1 else { return nil }
        let isPath = bytes[range.lowerBound + 1] == UInt8(ascii: "K")
        let digits = range.dropFirst(isPath ? 2 : 1)
        guard !digits.isEmpty, digits.allSatisfy({ Lexer.isDigit(bytes[$0]) }), let number = Int(text(digits)) else { return nil }
        return isPath ? .pathArgument(number) : .argument(number)
    }

    private static func constant(_ word: String) -> TokenKind? {
        switch word {
        case "true", "TRUE": return .literal(.bool(true))
        case "false", "FALSE": return .literal(.bool(false))
        default: break
        }
        return switch word.lowercased() {
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
