import CZstd
import SluiceCore

/// A reader of a zstd stream. Consecutive frames are one stream.
@safe final class ZstdReader: DecompressedFormat {
    /// The maximum window, 8 MiB. RFC 8878 requires it of every decoder, and no larger one.
    private static let windowLog: Int32 = 23

    private let stream: OpaquePointer
    private(set) var isAtEnd = false

    init() throws(SluiceError) {
        guard let stream = unsafe ZSTD_createDCtx() else { throw Gzip.noMemory }
        unsafe self.stream = unsafe stream
        guard unsafe ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLog)) == 0 else { throw Gzip.noMemory }
    }

    deinit { unsafe ZSTD_freeDCtx(stream) }

    func step(_ input: [UInt8], from start: Int, atMost limit: Int) throws(SluiceError) -> (consumed: Int, output: [UInt8]) {
        // A further call behind the last frame would begin another one, and the stream would not be at its end any more.
        if isAtEnd, start == input.count { return (0, []) }
        var consumed = 0
        var status = 0
        let output = unsafe [UInt8](unsafeUninitializedCapacity: limit) { room, count in
            unsafe input.withUnsafeBytes { input in
                var from = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: start)
                var to = unsafe ZSTD_outBuffer(dst: room.baseAddress, size: limit, pos: 0)
                unsafe status = ZSTD_decompressStream(stream, &to, &from)
                consumed = unsafe from.pos - start
                count = unsafe to.pos
            }
        }
        guard ZSTD_isError(status) == 0 else {
            let reason = unsafe String(cString: ZSTD_getErrorName(status))
            throw SluiceError(
                .badCompression, "The body is not zstd, or damaged: \(reason).",
                fix: "Check Content-Encoding, and compress with a window of 8 MiB or less.")
        }
        isAtEnd = status == 0
        return (consumed, output)
    }
}
