package import SluiceCore
package import SluiceValues

extension Value {
    /// Any value at all, extremes included.
    package static func random(using generator: inout SplitMix64, depth: Int = 0) -> Value {
        switch UInt64.random(in: 0..<(depth < 3 ? 14 : 11), using: &generator) {
        case 0: .null
        case 1: .bool(.random(using: &generator))
        case 2: .int([.min, -1, 0, 1, .max].randomElement(using: &generator) ?? 0)
        case 3: .int(Int64.random(in: .min ... .max, using: &generator))
        case 4: .float(Float(bitPattern: UInt32(truncatingIfNeeded: generator.next())))
        case 5: .double(Double(bitPattern: generator.next()))
        case 6: .decimal(Decimal128(high: generator.next(), low: generator.next()))
        case 7: .string(.random(using: &generator))
        case 8: .binary((0..<Int.random(in: 0..<40, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) })
        case 9: .timestamp(.random(using: &generator))
        case 10:
            Bool.random(using: &generator)
                ? .objectId(ObjectIdentifierBytes(high: generator.next(), low: UInt32(truncatingIfNeeded: generator.next())))
                : .uuid(UUIDBytes(high: generator.next(), low: generator.next()))
        case 11: .list((0..<Int.random(in: 0..<5, using: &generator)).map { _ in random(using: &generator, depth: depth + 1) })
        case 12:
            .dictionary(
                Dictionary(
                    (0..<Int.random(in: 0..<5, using: &generator)).map {
                        ("key\($0)", random(using: &generator, depth: depth + 1))
                    }, uniquingKeysWith: { first, _ in first }))
        default: .link(type: .random(using: &generator), key: .int(Int64(truncatingIfNeeded: generator.next())))
        }
    }
}

extension String {
    package static func random(using generator: inout SplitMix64) -> String {
        let alphabet: [Character] = ["a", "Z", "0", " ", "\"", "\\", "\n", "\u{1}", "é", "水", "🛫", "/", "{"]
        return String((0..<Int.random(in: 0..<20, using: &generator)).compactMap { _ in alphabet.randomElement(using: &generator) })
    }
}

extension Timestamp {
    /// A time between the years 0 and 9999.
    package static func random(using generator: inout SplitMix64) -> Timestamp {
        let seconds = Int64.random(in: -62_100_000_000...253_300_000_000, using: &generator)
        let nanoseconds = Int32.random(in: 0..<1_000_000_000, using: &generator)
        return Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -nanoseconds : nanoseconds)
    }
}
