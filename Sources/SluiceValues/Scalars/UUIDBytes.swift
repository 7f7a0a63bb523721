/// The 16 bytes of a UUID, big-endian in two words.
package struct UUIDBytes: Hashable, Sendable, Comparable, CustomStringConvertible {
    @usableFromInline package var high: UInt64
    @usableFromInline package var low: UInt64

    @inlinable package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the 8-4-4-4-12 form in either case, or returns nil.
    @inlinable
    package init?(_ text: some StringProtocol) {
        guard let id = text.withBytes({ UUIDBytes(utf8: $0) }) else { return nil }
        self = id
    }

    /// Reads the same from UTF-8.
    @usableFromInline
    package init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        guard text.count == 36 else { return nil }
        var (high, low, digits): (UInt64, UInt64, Int) = (0, 0, 0)
        for (index, byte) in text.enumerated() {
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let value = Hex.nibble(byte) else { return nil }
            if digits < 16 { high = high << 4 | UInt64(value) } else { low = low << 4 | UInt64(value) }
            digits += 1
        }
        self.init(high: high, low: low)
    }

    /// - Precondition: `bytes` has 16 elements.
    package init(bytes: some Collection<UInt8>) {
        precondition(bytes.count == 16, "a UUID has 16 bytes, not \(bytes.count)")
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
    }

    package var description: String {
        let hex = Array(Hex.encode(bytes).utf8)
        let parts = [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]]
        return parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
    }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}
