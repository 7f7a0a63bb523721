import SluiceValues

/// A 64-bit fingerprint of a value, stable across releases and machines. It is stored beside each property's clock. A stored value with
/// another hash was written by SQL and not by the merge.
///
/// FNV-1a over a tag and the content, with little-endian integers. Spellings that PostgreSQL does not preserve have one hash. Times count
/// whole microseconds, and decimals drop trailing zeros. There is one NaN and one zero. A float hashes as the double of the same digits,
/// because a mixed property returns it as a double.
package struct ValueHash: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package init(_ value: Value) {
        var hasher = FNV1a()
        hasher.combine(value)
        rawValue = hasher.state
    }
}

private struct FNV1a {
    var state: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func byte(_ byte: UInt8) {
        state = (state ^ UInt64(byte)) &* 0x100_0000_01B3
    }

    mutating func bytes(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { self.byte(byte) }
    }

    mutating func integer(_ value: some FixedWidthInteger) {
        var rest = value
        for _ in 0..<MemoryLayout.size(ofValue: value) {
            byte(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    mutating func counted(_ text: String) {
        integer(UInt32(clamping: text.utf8.count))
        bytes(text.utf8)
    }

    /// The tags are part of a stored format: never renumber them.
    mutating func combine(_ value: Value) {
        switch value {
        case .null: byte(0)
        case .bool(let value): tagged(1, UInt8(value ? 1 : 0))
        case .int(let value): tagged(2, value)
        case .float(let value): double(value.isFinite ? Double("\(value)") ?? Double(value) : Double(value))
        case .double(let value): double(value)
        case .decimal(let value): decimal(value)
        case .string(let value):
            byte(6)
            counted(value)
        case .binary(let value):
            tagged(7, UInt32(clamping: value.count))
            bytes(value)
        case .timestamp(let value): tagged(8, value.microseconds)
        case .objectId(let value):
            tagged(9, value.high)
            integer(value.low)
        case .uuid(let value):
            tagged(10, value.high)
            integer(value.low)
        case .list(let elements):
            tagged(11, UInt32(clamping: elements.count))
            for element in elements { combine(element) }
        case .dictionary(let pairs): dictionary(pairs)
        case .link(let type, let key):
            byte(13)
            counted(type)
            combine(key)
        }
    }

    private mutating func tagged(_ tag: UInt8, _ value: some FixedWidthInteger) {
        byte(tag)
        integer(value)
    }

    private mutating func double(_ value: Double) {
        tagged(4, value.isNaN ? Double.nan.bitPattern : value == 0 ? 0 : value.bitPattern)
    }

    private mutating func dictionary(_ pairs: [String: Value]) {
        tagged(12, UInt32(clamping: pairs.count))
        for (key, value) in pairs.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            counted(key)
            combine(value)
        }
    }

    private mutating func decimal(_ value: Decimal128) {
        byte(5)
        guard value.isFinite else { return byte(value.isNaN ? 1 : value.isNegative ? 2 : 3) }
        var (coefficient, exponent) = value.parts
        if coefficient == 0 { return byte(0) }
        while coefficient % 10 == 0 { (coefficient, exponent) = (coefficient / 10, exponent + 1) }
        byte(value.isNegative ? 4 : 5)
        integer(coefficient)
        integer(Int32(exponent))
    }
}
