import SluiceCompression
import SluiceCore
import TestSupport
import Testing

@Suite struct `A zlib body` {
    private static func code(_ bytes: [UInt8], count: Int) -> ErrorCode? {
        do {
            _ = try Zlib().decompress(bytes, count: count)
            return nil
        } catch { return error.code }
    }

    @Test(arguments: [0, 1, 1_000, 300_000, 2 << 20, (5 << 20) + 3]) func `comes out as it went in`(count: Int) throws {
        var random = SplitMix64(seed: UInt64(count) + 1)
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() % 7) }
        let compressed = try Zlib().compress(bytes)
        #expect(try Zlib().decompress(compressed, count: count) == bytes)
        #expect(Self.code(compressed, count: count + 1) == .badCompression)
        #expect(Self.code(compressed + [0], count: count) == .badCompression)
        #expect(Self.code(Array(compressed.dropLast()), count: count) == .badCompression)
        if count > 0 { #expect(Self.code(compressed, count: count - 1) == .badCompression) }
    }

    @Test(arguments: [1, 1_000, 300_000, (2 << 20) + 1]) func `of bytes that cannot be compressed is hardly larger`(count: Int) throws {
        var random = SplitMix64(seed: UInt64(count))
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let compressed = try Zlib().compress(bytes)
        #expect(compressed.count <= count + count / 100 + 64)
        #expect(try Zlib().decompress(compressed, count: count) == bytes)
    }

    /// Sixteen times `a`, with the header, the Huffman codes and the checksum of RFC 1950 and RFC 1951.
    @Test func `is read from another program's bytes`() throws {
        let bytes: [UInt8] = [0x78, 0x9c, 0x4b, 0x4c, 0x44, 0x05, 0x00, 0x33, 0x98, 0x06, 0x11]
        #expect(try Zlib().decompress(bytes, count: 16) == [UInt8](repeating: 0x61, count: 16))
    }

    @Test func `that claims to be large is refused before memory is used`() {
        #expect(Self.code([0x78, 0x9c, 3, 0, 0, 0, 0, 1], count: 1 << 50) == .badCompression)
        #expect(Self.code([], count: 1) == .badCompression)
        #expect(Self.code([0x78, 0x9c, 3, 0, 0, 0, 0, 1], count: -1) == .badCompression)
    }

    @Test(arguments: seeds(10)) func `that is damaged is refused or comes out at its size`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let bytes = (0..<random.below(400)).map { _ in UInt8(truncatingIfNeeded: random.next() % 5) }
            var compressed = try Zlib().compress(bytes)
            compressed[random.below(compressed.count)] ^= UInt8(1 + random.below(255))
            guard let result = try? Zlib().decompress(compressed, count: bytes.count) else { continue }
            #expect(result.count == bytes.count, "seed \(seed)")
        }
    }
}
