import CZlib
package import SluiceCore

/// A reader of a gzip stream. Consecutive members are one stream.
@safe final class GzipReader: DecompressedFormat {
    /// The state of zlib, which keeps pointers into it, so that it must not move.
    private let stream: UnsafeMutablePointer<z_stream>
    private(set) var isAtEnd = false

    init() throws(SluiceError) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        unsafe self.stream = unsafe stream
        guard unsafe sluice_gunzip_start(stream) == Z_OK else { throw Gzip.noMemory }
    }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }

    func step(_ input: [UInt8], from start: Int, atMost limit: Int) throws(SluiceError) -> (consumed: Int, output: [UInt8]) {
        // Another member begins where the last one ended.
        if isAtEnd, start < input.count {
            unsafe inflateReset(stream)
            isAtEnd = false
        }
        var status = Z_OK
        let (consumed, output) = unsafe Gzip.step(stream, input, from: start, atMost: limit) {
            unsafe status = inflate($0, Z_NO_FLUSH)
        }
        switch status {
        case Z_STREAM_END: isAtEnd = true
        // No input or no room is left; the caller continues.
        case Z_OK, Z_BUF_ERROR: break
        case Z_MEM_ERROR: throw Gzip.noMemory
        default:
            throw SluiceError(
                .badCompression, "The body is not gzip, or damaged.",
                fix: "Check Content-Encoding and the program that compressed the body.")
        }
        return (consumed, output)
    }
}

/// A gzip compressor for whole bodies, as the command line sends them.
package enum Gzip {
    static let noMemory = SluiceError(.internalError, "Memory for a compressed stream could not be allocated.")

    /// Compresses bytes.
    ///
    /// - Parameter level: The effort, from 1 (fast) to 9 (small).
    /// - Throws: `internalError` if it cannot allocate memory.
    package static func compress(_ bytes: [UInt8], level: Int32 = 6) throws(SluiceError) -> [UInt8] {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        defer { unsafe stream.deallocate() }
        guard unsafe sluice_gzip_start(stream, level) == Z_OK else { throw noMemory }
        defer { unsafe deflateEnd(stream) }
        var result: [UInt8] = []
        var position = 0
        var status = Z_OK
        while status == Z_OK {
            let (consumed, output) = unsafe step(stream, bytes, from: position, atMost: 64 << 10) {
                unsafe status = deflate($0, Z_FINISH)
            }
            position += consumed
            result += output
        }
        guard status == Z_STREAM_END else { throw noMemory }
        return result
    }

    /// Gives zlib the input from a position on, and room for the output, for one call.
    static func step(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: [UInt8], from start: Int, atMost limit: Int,
        _ call: (UnsafeMutablePointer<z_stream>) -> Void
    ) -> (consumed: Int, output: [UInt8]) {
        var consumed = 0
        let output = unsafe [UInt8](unsafeUninitializedCapacity: limit) { room, count in
            unsafe input.withUnsafeBufferPointer { input in
                // zlib counts in 32 bits; the caller continues with the rest.
                let available = min(input.count - start, Int(UInt32.max))
                unsafe stream.pointee.next_in = input.baseAddress.map { unsafe UnsafeMutablePointer(mutating: $0 + start) }
                unsafe stream.pointee.avail_in = UInt32(available)
                unsafe stream.pointee.next_out = room.baseAddress
                unsafe stream.pointee.avail_out = UInt32(limit)
                unsafe call(stream)
                consumed = unsafe available - Int(stream.pointee.avail_in)
                count = unsafe limit - Int(stream.pointee.avail_out)
            }
        }
        return (consumed, output)
    }
}
