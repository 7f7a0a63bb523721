import CZstd
import SluiceCore

/// A reader of a zstd stream. Consecutive frames are one stream.
@safe final class ZstdReader: DecompressedFormat {
    /// The maximum window, 8 MiB. RFC 8878 requires it of every decoder, and no larger one.
    private static let windowLog: Int32 = 23

    private let stream: OpaquePointer
    private(set) var isAtEnd = false
    private var frame = Frame()

    /// The part of a frame that was read. libzstd does not compare the size of each frame with that of its header: one that ends with an
    /// empty block may have any size, if it arrives in pieces.
    private struct Frame {
        /// The longest header (RFC 8878, section 3.1.1.1).
        private static let headerBytes = 18
        private static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
        /// The first byte is one of sixteen.
        private static let skippable: [UInt8] = [0x50, 0x2A, 0x4D, 0x18]

        private var head: [UInt8] = []
        private var given: UInt64 = 0

        /// Returns `false` if the frame does not begin as RFC 8878 says. Builds of libzstd also read frames of older formats, or parts of
        /// them.
        func canContinue(with bytes: ArraySlice<UInt8>) -> Bool {
            guard head.count < Self.magic.count else { return true }
            let start = head + bytes.prefix(Self.magic.count - head.count)
            let isSkippable = start.first.map { $0 & 0xF0 == Self.skippable[0] } == true
            return isSkippable
                ? zip(start, Self.skippable).dropFirst().allSatisfy { $0 == $1 } : zip(start, Self.magic).allSatisfy { $0 == $1 }
        }

        mutating func take(_ bytes: ArraySlice<UInt8>, given count: Int) {
            head += bytes.prefix(Self.headerBytes - head.count)
            given += UInt64(count)
        }

        /// `true` if the frame has as many bytes as its header says, or if that says nothing.
        var isWhole: Bool {
            let size = unsafe head.withUnsafeBytes { unsafe ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
            // The two greatest numbers are those of a size that is unknown, and of an error.
            return size >= UInt64.max - 1 || size == given
        }
    }

    init() throws(SluiceError) {
        guard let stream = unsafe ZSTD_createDCtx() else { throw Gzip.noMemory }
        unsafe self.stream = unsafe stream
        guard unsafe ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLog)) == 0 else { throw Gzip.noMemory }
    }

    deinit { unsafe ZSTD_freeDCtx(stream) }

    func step(_ input: [UInt8], from start: Int, atMost limit: Int) throws(SluiceError) -> (consumed: Int, output: [UInt8]) {
        // A further call behind the last frame would begin another one, and the stream would not be at its end any more.
        if isAtEnd, start == input.count { return (0, []) }
        guard frame.canContinue(with: input[start...]) else { throw Self.damaged("it has another magic number") }
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
        guard ZSTD_isError(status) == 0 else { throw Self.damaged(unsafe String(cString: ZSTD_getErrorName(status))) }
        frame.take(input[start..<start + consumed], given: output.count)
        isAtEnd = status == 0
        if isAtEnd {
            guard frame.isWhole else { throw Self.damaged("a frame has another size than its header says") }
            frame = Frame()
        }
        return (consumed, output)
    }

    private static func damaged(_ reason: String) -> SluiceError {
        SluiceError(
            .badCompression, "The body is not zstd, or damaged: \(reason).",
            fix: "Check Content-Encoding, and compress with a window of 8 MiB or less.")
    }
}
