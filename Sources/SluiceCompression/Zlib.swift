import CZlib
import Dispatch
package import SluiceCore
import Synchronization

/// Compresses and decompresses whole bodies in the zlib format (RFC 1950), as Realm's protocol uses it.
package struct Zlib: Sendable {
    /// The maximum growth factor of the format. A stream that claims more is refused before memory is used.
    private static let ratio = 1_032
    /// The size of a piece that is worth another thread. A body has at least two of them, or is compressed at once.
    private static let pieceBytes = 1 << 20

    package init() {}

    /// Returns the compressed form of a body.
    ///
    /// It uses the fastest level. For the rows of a bootstrap, the default level takes almost five times as long and saves 11 %. A body of
    /// two megabytes or more is compressed by several threads, as a client waits for it.
    ///
    /// - Throws: `internalError` if it cannot allocate memory.
    package func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] {
        let count = bytes.count / Self.pieceBytes
        return count > 1 ? try Self.compress(bytes, pieces: count) : try Self.compressAtOnce(bytes)
    }

    private static func compress(_ bytes: [UInt8], pieces count: Int) throws(SluiceError) -> [UInt8] {
        let pieces = Mutex<[(bytes: [UInt8], checksum: UInt)]>(Array(repeating: ([], 0), count: count))
        let size = bytes.count / count
        @Sendable func range(_ index: Int) -> Range<Int> { index * size..<(index == count - 1 ? bytes.count : (index + 1) * size) }
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let piece = Self.piece(bytes[range(index)], isLast: index == count - 1)
            pieces.withLock { $0[index] = piece }
        }
        // The header of the fastest level.
        var (result, checksum): ([UInt8], UInt) = ([0x78, 0x01], 1)
        for (index, piece) in pieces.withLock(\.self).enumerated() {
            guard !piece.bytes.isEmpty else { throw Gzip.noMemory }
            result += piece.bytes
            checksum = adler32_combine(checksum, piece.checksum, range(index).count)
        }
        return unsafe withUnsafeBytes(of: UInt32(truncatingIfNeeded: checksum).bigEndian) { unsafe result + $0 }
    }

    /// Compresses a piece of a body.
    /// - Returns: No bytes without memory, and the checksum of RFC 1950.
    private static func piece(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> (bytes: [UInt8], checksum: UInt) {
        // The flush between two pieces has at most six bytes.
        let room = Int(compressBound(uLong(bytes.count))) + 6
        var checksum: UInt = 1
        let result = unsafe [UInt8](unsafeUninitializedCapacity: room) { output, count in
            unsafe bytes.withUnsafeBufferPointer { input in
                checksum = unsafe adler32(1, input.baseAddress, UInt32(input.count))
                count = unsafe sluice_deflate_piece(input.baseAddress, input.count, output.baseAddress, room, isLast ? 1 : 0)
            }
        }
        return (result, checksum)
    }

    private static func compressAtOnce(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] {
        var status = Z_OK
        let room = Int(compressBound(uLong(bytes.count)))
        let result = unsafe [UInt8](unsafeUninitializedCapacity: room) { output, count in
            var length = uLong(room)
            unsafe bytes.withUnsafeBufferPointer { input in
                status = unsafe compress2(output.baseAddress, &length, input.baseAddress, uLong(input.count), Z_BEST_SPEED)
            }
            count = status == Z_OK ? Int(length) : 0
        }
        guard status == Z_OK else { throw Gzip.noMemory }
        return result
    }

    /// Returns the body of a compressed form. It allocates at most `count` bytes for the body.
    ///
    /// - Throws: `badCompression` unless the bytes are one complete stream of exactly `count` bytes; `internalError` if it cannot allocate
    ///   memory.
    package func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8] {
        guard count >= 0, count / Self.ratio <= bytes.count else { throw Self.malformed(count) }
        var status = Z_OK
        var consumed = 0
        // Without room, zlib takes a body of one byte for an empty one.
        let room = max(count, 1)
        let result = unsafe [UInt8](unsafeUninitializedCapacity: room) { output, written in
            var length = uLong(room)
            var input = uLong(bytes.count)
            unsafe bytes.withUnsafeBufferPointer { source in
                status = unsafe uncompress2(output.baseAddress, &length, source.baseAddress, &input)
            }
            consumed = Int(input)
            written = status == Z_OK ? Int(length) : 0
        }
        if status == Z_MEM_ERROR { throw Gzip.noMemory }
        guard status == Z_OK, result.count == count, consumed == bytes.count else { throw Self.malformed(count) }
        return result
    }

    private static func malformed(_ count: Int) -> SluiceError {
        SluiceError(
            .badCompression, "A body is not one zlib stream of \(count) bytes.", fix: "Check the program that compressed the body.")
    }
}
