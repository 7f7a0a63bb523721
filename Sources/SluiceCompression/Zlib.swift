import CIsal
import CZlib
package import SluiceCore

/// Compresses and decompresses whole bodies in the zlib format (RFC 1950), as Realm's protocol uses it.
package struct Zlib: Sendable {
    /// The maximum growth factor of the format. A stream that claims more is refused before memory is used.
    private static let ratio = 1_032

    package init() {}

    /// Returns the compressed form of a body.
    ///
    /// It uses the level 1 of ISA-L, as a client waits for it. Of the rows of a bootstrap, zlib's fastest level takes four times as long
    /// and saves 3 % less.
    ///
    /// - Throws: `internalError` if it cannot allocate memory, or for a body beyond 4 GiB.
    package func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] {
        let room = sluice_compressed_bound(bytes.count)
        let result = unsafe [UInt8](unsafeUninitializedCapacity: room) { output, count in
            unsafe bytes.withUnsafeBufferPointer { input in
                count = unsafe sluice_compress(input.baseAddress, input.count, output.baseAddress, room)
            }
        }
        guard !result.isEmpty else { throw Gzip.noMemory }
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
