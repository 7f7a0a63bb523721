/// The CRC of 64 bits with the reflected polynomial of ECMA-182, as `mongodump --archive` writes it for each collection.
package struct CRC64: Sendable {
    private static let polynomial: UInt64 = 0xC96C_5795_D787_0F42

    /// Eight tables of 256 entries. Table n holds the effect of a byte that n more bytes follow.
    private static let tables: [UInt64] = {
        var tables = [UInt64](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var value = UInt64(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
            tables[byte] = value
        }
        for index in 256..<8 * 256 {
            let before = tables[index - 256]
            tables[index] = before >> 8 ^ tables[Int(before & 0xFF)]
        }
        return tables
    }()

    private var state: UInt64 = .max

    package init() {}

    /// The checksum of all bytes so far.
    package var value: UInt64 { ~state }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        state = CRC64.tables.withUnsafeBufferPointer { tables in
            var (state, index) = (state, 0)
            while index + 8 <= bytes.count {
                let word = state ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                var next: UInt64 = 0
                for place in 0..<8 { next ^= tables[(7 - place) << 8 | Int(word >> (8 * UInt64(place)) & 0xFF)] }
                state = next
                index += 8
            }
            while index < bytes.count {
                state = state >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: state) ^ bytes[index])]
                index += 1
            }
            return state
        }
    }
}
