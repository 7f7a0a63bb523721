/// An IEEE 754-2008 decimal128: 34 digits, exponents -6176 to 6111, in the binary integer encoding.
///
/// Equality compares encodings, as change detection needs: 1.0 differs from 1. `compare(_:_:)` compares numbers.
package struct Decimal128: Hashable, Sendable {
    /// The encoding's high and low words.
    @usableFromInline package var high: UInt64
    @usableFromInline package var low: UInt64

    @inlinable package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Precondition: `bytes` has 16 elements, big-endian, high word first.
    package init(bytes: some Collection<UInt8>) {
        precondition(bytes.count == 16, "a decimal128 has 16 bytes, not \(bytes.count)")
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
    }
}
