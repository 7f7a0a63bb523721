/// The 12 bytes of an ObjectId, big-endian in two words so that comparing the words compares the bytes.
package struct ObjectIdentifierBytes: Hashable, Sendable, Comparable, CustomStringConvertible {
    @usableFromInline package var high: UInt64
    @usableFromInline package var low: UInt32

    @inlinable package init(high: UInt64, low: UInt32) {
        self.high = high
        self.low = low
    }

    /// Reads 24 hexadecimal digits of either case, or returns nil.
    @inlinable
    package init?(hex text: some StringProtocol) {
        guard let id = text.withBytes({ ObjectIdentifierBytes(hex: $0) }) else { return nil }
        self = id
    }

    /// Reads the same from UTF-8.
    @usableFromInline
    package init?(hex digits: UnsafeBufferPointer<UInt8>) {
        guard digits.count == 24 else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        for (index, digit) in digits.enumerated() {
            guard let value = Hex.nibble(digit) else { return nil }
            if index < 16 { high = high << 4 | UInt64(value) } else { low = low << 4 | UInt64(value) }
        }
        self.init(high: high, low: UInt32(low))
    }

    /// - Precondition: `bytes` has 12 elements.
    package init(bytes: some Collection<UInt8>) {
        precondition(bytes.count == 12, "an ObjectId has 12 bytes, not \(bytes.count)")
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt32($1) }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
    }

    package var description: String { Hex.encode(bytes) }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}
