/// Base64 of RFC 4648 section 4. The padding may be left out when reading.
enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(pending >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(digits[Int(pending << UInt32(6 - bits) & 63)]) }
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil when the text is not base64.
    static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let content = text.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.count - content.count
        guard padding <= 2, text.dropFirst(content.count).allSatisfy({ $0 == UInt8(ascii: "=") }), content.count % 4 != 1 else {
            return nil
        }
        guard padding == 0 || text.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        var pending: UInt32 = 0
        var bits = 0
        for byte in content {
            guard let digit = value(byte) else { return nil }
            pending = pending << 6 | digit
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
            }
        }
        return bytes
    }

    private static func value(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
