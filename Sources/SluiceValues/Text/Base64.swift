/// Base64 (RFC 4648), with padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << (UInt32(3 - group.count) * 8)
            for place in 0..<4 {
                let isPadding = place > group.count
                text.append(isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * UInt32(place)) & 63)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns nil for a character outside the alphabet, a wrong length, missing padding, or bits after the last byte.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count / 4 * 3)
        for start in stride(from: 0, to: utf8.count, by: 4) {
            let isLast = start + 4 == utf8.count
            let padding = isLast ? utf8[start + 2..<start + 4].filter { $0 == UInt8(ascii: "=") }.count : 0
            var bits: UInt32 = 0
            for byte in utf8[start..<start + 4 - padding] {
                guard let sextet = sextet(byte) else { return nil }
                bits = bits << 6 | sextet
            }
            bits <<= UInt32(padding) * 6
            guard padding == 0 || bits & (padding == 1 ? 0xFF : 0xFFFF) == 0 else { return nil }
            for place in 0..<3 - padding { bytes.append(UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(place)))) }
        }
        return bytes
    }

    private static func sextet(_ byte: UInt8) -> UInt32? {
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
