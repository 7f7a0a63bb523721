extension JSON {
    /// The maximum number of containers around a value. Beyond: an error.
    public static let maximumDepth = 100

    /// Reads one JSON text: RFC 8259, UTF-8, with only white space around it.
    ///
    /// Strict: rejects comments, trailing commas, lone surrogates and equal keys in one object. Nesting is bounded by `maximumDepth`. An
    /// integer within 64 bits remains an integer; `-0` and every other number become a double.
    /// - Throws: The first error in the text and its place. Columns count Unicode scalars.
    package static func located(_ bytes: [UInt8]) throws(JSONError) -> JSON {
        var parser = JSONParser(bytes: bytes)
        return try parser.document()
    }
}

private struct JSONParser {
    let bytes: [UInt8]
    var position = 0
    var line = 1
    /// The position up to which columns are counted, and its column. Counting columns costs one pass over the text in all.
    private var markedPosition = 0
    private var markedColumn = 1

    init(bytes: [UInt8]) { self.bytes = bytes }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func document() throws(JSONError) -> JSON {
        skipSpace()
        let value = try self.value(depth: 0)
        skipSpace()
        guard position == bytes.count else { throw expected("the end of the text") }
        return value
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSON {
        switch current {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return try number()
        default: throw expected("a value")
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        let text = word.withUTF8Buffer { Array($0) }
        guard bytes[position...].starts(with: text) else { throw expected("a value") }
        position += text.count
        return value
    }

    // MARK: Containers

    private mutating func enter(_ depth: Int) throws(JSONError) {
        guard depth < JSON.maximumDepth else { throw failure("the text is nested deeper than \(JSON.maximumDepth) levels") }
        position += 1
        skipSpace()
    }

    private mutating func array(depth: Int) throws(JSONError) -> JSON {
        try enter(depth)
        var elements: [JSON] = []
        if take(UInt8(ascii: "]")) { return .array(elements) }
        while true {
            elements.append(try value(depth: depth + 1))
            skipSpace()
            if take(UInt8(ascii: "]")) { return .array(elements) }
            guard take(UInt8(ascii: ",")) else { throw expected("',' or ']'") }
            skipSpace()
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSON {
        try enter(depth)
        var members: [Member] = []
        var keys = KeySet()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            let member = try self.member(depth: depth, keys: &keys)
            members.append(member)
            skipSpace()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw expected("',' or '}'") }
            skipSpace()
        }
    }

    private typealias Member = JSON.Member

    private mutating func member(depth: Int, keys: inout KeySet) throws(JSONError) -> Member {
        guard current == UInt8(ascii: "\"") else { throw expected("a key in quotes") }
        let (line, column) = (self.line, self.column())
        let key = try string()
        guard keys.insert(key) else { throw failure("the key \"\(key)\" is given twice", line: line, column: column) }
        skipSpace()
        guard take(UInt8(ascii: ":")) else { throw expected("':' after the key \"\(key)\"") }
        skipSpace()
        return Member(key, try value(depth: depth + 1), line: line, column: column)
    }

    /// The keys of one object. Up to 16 keys are compared one by one, which is faster than hashing.
    private struct KeySet {
        private var few: [String] = []
        private var many: Set<[UInt8]> = []

        mutating func insert(_ key: String) -> Bool {
            if many.isEmpty {
                if few.contains(where: { $0.hasSameBytes(as: key) }) { return false }
                few.append(key)
                if few.count > 16 { many = Set(few.map { Array($0.utf8) }) }
                return true
            }
            return many.insert(Array(key.utf8)).inserted
        }
    }

    // MARK: Scalars

    private mutating func number() throws(JSONError) -> JSON {
        let start = position
        var isInteger = true
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) {
            isInteger = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, text != "-0", let integer = Int64(text) { return .int(integer) }
        guard let double = Double(text), double.isFinite else {
            position = start
            throw failure("the number \(text) is out of range")
        }
        return .double(double)
    }

    private mutating func digits() throws(JSONError) {
        let start = position
        while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        if position == start { throw expected("a digit") }
    }

    private mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        while let byte = current, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
        if current == UInt8(ascii: "\"") {
            defer { position += 1 }
            return try text(bytes[start..<position], from: start)
        }
        return try escapedString(from: start)
    }

    /// Reads the rest of a string that contains an escape.
    private mutating func escapedString(from start: Int) throws(JSONError) -> String {
        var content = Array(bytes[start..<position])
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                defer { position += 1 }
                return try text(content[...], from: start)
            case UInt8(ascii: "\\"):
                content.append(contentsOf: String(try escape()).utf8)
            case 0..<0x20:
                throw failure("a string contains the control character 0x\(Hex.encode([byte])); write it as an escape")
            default:
                content.append(byte)
                position += 1
            }
        }
        throw expected("'\"' at the end of a string")
    }

    private func text(_ content: ArraySlice<UInt8>, from start: Int) throws(JSONError) -> String {
        guard let text = String(validating: content, as: UTF8.self) else {
            var copy = self
            copy.position = start
            throw copy.failure("a string is not well-formed UTF-8")
        }
        return text
    }

    private mutating func escape() throws(JSONError) -> Unicode.Scalar {
        position += 1
        guard let byte = current else { throw expected("a character after '\\'") }
        switch byte {
        case UInt8(ascii: "u"): return try unicodeEscape()
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
            position += 1
            return Unicode.Scalar(byte)
        default:
            let named: [UInt8: Unicode.Scalar] = [
                UInt8(ascii: "b"): "\u{8}", UInt8(ascii: "f"): "\u{c}", UInt8(ascii: "n"): "\n",
                UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
            ]
            guard let scalar = named[byte] else { throw expected("an escape character after '\\'") }
            position += 1
            return scalar
        }
    }

    private mutating func unicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let high = try hexUnit()
        if let scalar = Unicode.Scalar(high) { return scalar }
        guard high < 0xDC00, current == UInt8(ascii: "\\"), position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "u") else {
            throw failure("half of a surrogate pair stands alone")
        }
        position += 1
        let low = try hexUnit()
        guard (0xDC00...0xDFFF).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00))
        else { throw failure("half of a surrogate pair stands alone") }
        return scalar
    }

    /// Reads a `u` and four hexadecimal digits at the position.
    private mutating func hexUnit() throws(JSONError) -> UInt16 {
        position += 1
        guard position + 4 <= bytes.count,
            let pair = Hex.decode(String(decoding: bytes[position..<position + 4], as: UTF8.self)), pair.count == 2
        else { throw expected("four hexadecimal digits after '\\u'") }
        position += 4
        return UInt16(pair[0]) << 8 | UInt16(pair[1])
    }

    // MARK: Places

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = current {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): position += 1
            case UInt8(ascii: "\n"):
                position += 1
                line += 1
                markedPosition = position
                markedColumn = 1
            default: return
            }
        }
    }

    private mutating func column() -> Int {
        let end = min(position, bytes.count)
        guard end > markedPosition else { return markedColumn }
        for byte in bytes[markedPosition..<end] where byte & 0xC0 != 0x80 { markedColumn += 1 }
        markedPosition = end
        return markedColumn
    }

    private mutating func expected(_ what: String) -> JSONError {
        guard let byte = current else { return failure("expected \(what), found the end of the text") }
        let found = (0x21...0x7E).contains(byte) ? "'\(Character(Unicode.Scalar(byte)))'" : "the byte 0x\(Hex.encode([byte]))"
        return failure("expected \(what), found \(found)")
    }

    private mutating func failure(_ problem: String, line: Int? = nil, column: Int? = nil) -> JSONError {
        JSONError(line: line ?? self.line, column: column ?? self.column(), problem: problem)
    }
}
