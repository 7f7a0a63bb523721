/// The line and the cause of a JSON syntax error.
public struct PluginValueError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line from 1.
    public var line: Int
    public var message: String
    public var description: String { "line \(line): \(message)" }
}

extension PluginValue {
    /// The maximum depth of arrays and objects. Beyond: an error.
    public static let maximumDepth = 100

    /// Reads one JSON text (RFC 8259).
    /// - Throws: The first error in the text, with its line.
    public init(parsing text: String) throws(PluginValueError) {
        try self.init(parsing: Array(text.utf8))
    }

    init(parsing bytes: [UInt8]) throws(PluginValueError) {
        var parser = Parser(bytes: bytes)
        parser.skipBlanks()
        self = try parser.value(depth: 0)
        parser.skipBlanks()
        if parser.position < bytes.count { throw parser.error("there is more text after the value") }
    }
}

private struct Parser {
    let bytes: [UInt8]
    var position = 0
    var line = 1

    init(bytes: [UInt8]) { self.bytes = bytes }

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    func error(_ message: String) -> PluginValueError { PluginValueError(line: line, message: message) }

    mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
            if byte == 0x0A { line += 1 }
            position += 1
        }
    }

    mutating func take(_ byte: UInt8, for what: String) throws(PluginValueError) {
        guard next == byte else { throw error("\(what) is missing") }
        position += 1
    }

    mutating func value(depth: Int) throws(PluginValueError) -> PluginValue {
        guard depth < PluginValue.maximumDepth else { throw error("more than \(PluginValue.maximumDepth) levels") }
        switch next {
        case nil: throw error("the text ends where a value is expected")
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    mutating func word(_ text: StaticString, _ value: PluginValue) throws(PluginValueError) -> PluginValue {
        let expected = Array("\(text)".utf8)
        guard bytes[position...].starts(with: expected) else { throw error("a value is expected") }
        position += expected.count
        return value
    }

    mutating func object(depth: Int) throws(PluginValueError) -> PluginValue {
        position += 1
        var members: [PluginValue.Member] = []
        var keys: Set<ByteText> = []
        skipBlanks()
        while next != UInt8(ascii: "}") {
            if !members.isEmpty {
                try take(UInt8(ascii: ","), for: "a comma between members")
                skipBlanks()
            }
            guard next == UInt8(ascii: "\"") else { throw error("a key in double quotes is expected") }
            let keyLine = line
            let key = try string()
            guard keys.insert(ByteText(key)).inserted else { throw error("key \"\(key)\" stands twice in one object") }
            skipBlanks()
            try take(UInt8(ascii: ":"), for: "the colon after key \"\(key)\"")
            skipBlanks()
            members.append(PluginValue.Member(key, try value(depth: depth + 1), line: keyLine))
            skipBlanks()
        }
        position += 1
        return .object(members)
    }

    mutating func array(depth: Int) throws(PluginValueError) -> PluginValue {
        position += 1
        var elements: [PluginValue] = []
        skipBlanks()
        while next != UInt8(ascii: "]") {
            if !elements.isEmpty {
                try take(UInt8(ascii: ","), for: "a comma between elements")
                skipBlanks()
            }
            elements.append(try value(depth: depth + 1))
            skipBlanks()
        }
        position += 1
        return .array(elements)
    }

    mutating func string() throws(PluginValueError) -> String {
        position += 1
        var content: [UInt8] = []
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw error("a control character stands in a string") }
            position += 1
            if byte == UInt8(ascii: "\\") { try escape(into: &content) } else { content.append(byte) }
        }
        try take(UInt8(ascii: "\""), for: "the closing quote of a string")
        guard let text = String(validating: content, as: UTF8.self) else { throw error("a string is not UTF-8") }
        return text
    }

    private mutating func escape(into content: inout [UInt8]) throws(PluginValueError) {
        guard let byte = next else { throw error("the text ends in a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
        case UInt8(ascii: "b"): content.append(0x08)
        case UInt8(ascii: "f"): content.append(0x0C)
        case UInt8(ascii: "n"): content.append(0x0A)
        case UInt8(ascii: "r"): content.append(0x0D)
        case UInt8(ascii: "t"): content.append(0x09)
        case UInt8(ascii: "u"): content.append(contentsOf: String(Character(try scalar())).utf8)
        default: throw error("an escape that JSON does not have stands in a string")
        }
    }

    private mutating func scalar() throws(PluginValueError) -> Unicode.Scalar {
        let high = try unit()
        var code = UInt32(high)
        if UTF16.isLeadSurrogate(high) {
            guard position + 1 < bytes.count, next == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u") else {
                throw error("a surrogate stands alone")
            }
            position += 2
            let low = try unit()
            guard UTF16.isTrailSurrogate(low) else { throw error("a surrogate stands alone") }
            code = 0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw error("a surrogate stands alone") }
        return scalar
    }

    private mutating func unit() throws(PluginValueError) -> UInt16 {
        guard position + 4 <= bytes.count else { throw error("the text ends in a string") }
        var code: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue else {
                throw error("\\u is not followed by four hexadecimal digits")
            }
            code = code << 4 | UInt16(digit)
            position += 1
        }
        return code
    }

    private mutating func digits() throws(PluginValueError) {
        let start = position
        while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
        if position == start { throw error(start == bytes.count ? "the text ends in a number" : "a value is expected") }
    }

    mutating func number() throws(PluginValueError) -> PluginValue {
        let start = position
        if next == UInt8(ascii: "-") { position += 1 }
        let leading = position
        try digits()
        if bytes[leading] == UInt8(ascii: "0"), position - leading > 1 { throw error("a number has a leading zero") }
        var isInteger = true
        if next == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isInteger = false
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .int(value) }
        guard let value = Double(text), value.isFinite else { throw error("the number \(text) is out of range") }
        return .double(value)
    }
}
