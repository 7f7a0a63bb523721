/// Base64 (RFC 4648), with padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    package static func encode(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { encode($0) } }

    /// Encodes the form with the alphabet of URLs and without padding (RFC 7515, section 2).
    package static func encode(url bytes: [UInt8]) -> String {
        bytes.withUnsafeBytes { encode($0, alphabet: urlAlphabet, isPadded: false) }
    }

    package static func encode(_ bytes: UnsafeRawBufferPointer) -> String { encode(bytes, alphabet: alphabet, isPadded: true) }

    private static func encode(_ bytes: UnsafeRawBufferPointer, alphabet: [UInt8], isPadded: Bool) -> String {
        let padding = UInt8(ascii: "=")
        return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
            var place = 0
            for start in stride(from: 0, to: bytes.count, by: 3) {
                let left = bytes.count - start
                var bits = UInt32(bytes[start]) << 16
                if left > 1 { bits |= UInt32(bytes[start + 1]) << 8 }
                if left > 2 { bits |= UInt32(bytes[start + 2]) }
                text[place] = alphabet[Int(bits >> 18)]
                text[place + 1] = alphabet[Int(bits >> 12 & 63)]
                text[place + 2] = left > 1 ? alphabet[Int(bits >> 6 & 63)] : padding
                text[place + 3] = left > 2 ? alphabet[Int(bits & 63)] : padding
                place += isPadded ? 4 : min(left, 3) + 1
            }
            return place
        }
    }

    /// Returns nil for a character outside the alphabet, a wrong length, missing padding, or bits after the last byte.
    @inlinable
    package static func decode(_ text: some StringProtocol) -> [UInt8]? { text.withBytes { decode(utf8: $0) } }

    /// Decodes the form with the alphabet of URLs and without padding (RFC 7515, section 2). Returns nil for any other text.
    package static func decode(url text: some Collection<UInt8>) -> [UInt8]? {
        // Bytes in one place are read by code that knows their type.
        if let decoded = text.withContiguousStorageIfAvailable({ decode(url: $0) }) { return decoded }
        return Array(text).withUnsafeBufferPointer { decode(url: $0) }
    }

    private static func decode(url text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var plain: [UInt8] = []
        plain.reserveCapacity(text.count + 3)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): plain.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): plain.append(UInt8(ascii: "/"))
            // The plain alphabet has these in place of the two above.
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: plain.append(byte)
            }
        }
        plain.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (4 - plain.count % 4) % 4))
        return plain.withUnsafeBufferPointer { decode(utf8: $0) }
    }

    @usableFromInline
    static func decode(utf8 text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        for start in stride(from: 0, to: text.count, by: 4) {
            let isLast = start + 4 == text.count
            let padding = isLast ? text[start + 2..<start + 4].filter { $0 == UInt8(ascii: "=") }.count : 0
            var bits: UInt32 = 0
            for byte in text[start..<start + 4 - padding] {
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
