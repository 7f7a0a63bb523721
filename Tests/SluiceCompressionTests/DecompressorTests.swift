import Foundation
import SluiceCompression
import SluiceCore
import TestSupport
import Testing

@Suite struct `A compressed body` {
    private static func read(_ pieces: [[UInt8]], _ encoding: ContentEncoding) throws -> [UInt8] {
        let decompressor = try Decompressor(encoding)
        var result: [UInt8] = []
        for piece in pieces {
            decompressor.feed(piece)
            while let bytes = try decompressor.next() {
                #expect(!bytes.isEmpty && bytes.count <= Decompressor.chunkBytes)
                result += bytes
            }
        }
        try decompressor.finish()
        return result
    }

    /// Cuts bytes into pieces of random lengths, most of them short.
    private static func cut(_ bytes: [UInt8], _ random: inout SplitMix64) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...(random.next() % 4 == 0 ? 5_000 : 9), using: &random))
            pieces.append(Array(bytes[start..<end]))
            start = end
        }
        return pieces
    }

    @Test(arguments: [0, 1, 1_000, 64 << 10, 300_000]) func `comes out as it went in, however it is cut`(count: Int) throws {
        var random = SplitMix64(seed: UInt64(count) + 1)
        let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() % 7) }
        let compressed = try Gzip.compress(bytes)
        #expect(try Self.read(Self.cut(compressed, &random), .gzip) == bytes)
        #expect(try Self.read([compressed], .gzip) == bytes)
    }

    @Test func `may be several gzip members one after the other`() throws {
        let compressed = try Gzip.compress(Array("one ".utf8)) + Gzip.compress(Array("two".utf8))
        #expect(try Self.read([compressed], .gzip) == Array("one two".utf8))
        #expect(try Self.read(compressed.map { [$0] }, .gzip) == Array("one two".utf8))
    }

    @Test func `of zstd comes out, in one piece, byte by byte, and several frames`() throws {
        let compressed = try Zstd.compress(String(repeating: "sluice ", count: 50_000))
        let plain = Array(String(repeating: "sluice ", count: 50_000).utf8)
        #expect(try Self.read([compressed], .zstd) == plain)
        #expect(try Self.read(compressed.map { [$0] }, .zstd) == plain)
        #expect(try Self.read([compressed + compressed], .zstd) == plain + plain)
        // The last piece fills a chunk to the byte.
        let chunk = String(repeating: "x", count: Decompressor.chunkBytes)
        #expect(try Self.read([Zstd.compress(chunk)], .zstd) == Array(chunk.utf8))
    }

    /// A frame whose header says one byte, and which has three empty blocks.
    @Test func `of zstd has the size of its header, however it arrives`() throws {
        let frame: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x01, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        for length in 1...frame.count {
            let pieces = stride(from: 0, to: frame.count, by: length).map { Array(frame[$0..<min($0 + length, frame.count)]) }
            let error = #expect(throws: SluiceError.self) { try Self.read(pieces, .zstd) }
            #expect(error?.code == .badCompression, "pieces of \(length)")
        }
        var whole = frame
        whole[5] = 0
        #expect(try Self.read([whole], .zstd) == [])
        #expect(try Self.read(whole.map { [$0] }, .zstd) == [])
    }

    @Test func `of zstd may have skippable frames, and none of older formats`() throws {
        let (plain, skippable): ([UInt8], [UInt8]) = (Array("one".utf8), [0x5A, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7])
        let whole = try skippable + Zstd.compress("one") + skippable
        #expect(try Self.read([whole], .zstd) == plain)
        #expect(try Self.read(whole.map { [$0] }, .zstd) == plain)
        // The magic number of version 0.5.
        let old: [UInt8] = [0x25, 0xB5, 0x2F, 0xFD, 4, 0xC5, 0xFF, 0x26]
        for pieces in [[old], old.map { [$0] }, [try Zstd.compress("one") + old]] {
            let error = #expect(throws: SluiceError.self) { try Self.read(pieces, .zstd) }
            #expect(error?.code == .badCompression)
        }
    }

    @Test func `that ends in the middle, or is damaged, says so`() throws {
        let compressed = try Gzip.compress(Array(repeating: 7, count: 10_000))
        for end in [1, 10, compressed.count - 1] {
            let error = #expect(throws: SluiceError.self) { try Self.read([Array(compressed[..<end])], .gzip) }
            #expect(error?.code == .badCompression)
        }
        for encoding in ContentEncoding.allCases {
            let error = #expect(throws: SluiceError.self) { try Self.read([Array("{\"a\": 1}".utf8)], encoding) }
            #expect(error?.code == .badCompression)
        }
        var damaged = compressed
        damaged[damaged.count - 6] ^= 1
        #expect(throws: SluiceError.self) { try Self.read([damaged], .gzip) }
    }

    @Test func `that is a bomb is refused before it has cost much`() throws {
        let bomb = try Gzip.compress([UInt8](repeating: 0, count: 64 << 20), level: 9)
        let error = #expect(throws: SluiceError.self) { try Self.read([bomb], .gzip) }
        #expect(error?.code == .bodyTooLarge)
        // As much, compressed no better than records are, goes through.
        var random = SplitMix64(seed: 4)
        let line = (0..<200).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        #expect(try Self.read([Gzip.compress(Array((0..<10).map { _ in line }.joined()))], .gzip).count == 2_000)
    }

    @Test func `names what is understood`() throws {
        #expect(try ContentEncoding.parse(nil) == nil)
        #expect(try ContentEncoding.parse("identity") == nil)
        #expect(try ContentEncoding.parse("GZIP") == .gzip)
        #expect(try ContentEncoding.parse("zstd") == .zstd)
        for other in ["br", "gzip, gzip", "deflate"] {
            let error = #expect(throws: SluiceError.self) { try ContentEncoding.parse(other) }
            #expect(error?.code == .unsupportedEncoding)
        }
    }
}

/// The `zstd` program, which the tests compress with; the product only reads.
private enum Zstd {
    static func compress(_ text: String) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(text.utf8).write(to: file)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["zstd", "--quiet", "--stdout", file.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Array(bytes)
    }
}
