package import SluiceCore

/// A streaming decompressor. `feed` supplies compressed bytes, and `next` returns decompressed ones until it returns nil.
///
/// Memory is one piece, one chunk (`chunkBytes`) and the format's window. The window is 32 KiB for gzip and 8 MiB for zstd, as RFC
/// 8878 requires of decoders. Consecutive streams without a gap, which both formats permit, count as one.
///
/// A stream that grows beyond `ratio` times its own size is rejected, once it has given `freeBytes`. No honest records compress
/// like that, and such a stream would occupy a processor for the price of a few bytes.
package final class Decompressor {
    /// The maximum number of bytes that `next` returns.
    package static let chunkBytes = 64 << 10
    /// The maximum growth factor of a stream, once it has given `freeBytes`.
    package static let ratio = 250
    /// The number of decompressed bytes before `ratio` applies.
    package static let freeBytes = 32 << 20

    private let format: any DecompressedFormat
    private let encoding: ContentEncoding
    private let ratio: Int
    private var input: [UInt8] = []
    private var position = 0
    private var taken = 0
    private var given = 0
    /// `true` if the last chunk was filled, so that the format may have more output without more input.
    private var isFull = false

    /// Creates a decompressor.
    ///
    /// - Parameter ratio: The maximum growth factor. `Int.max` is for files of the operator, who decides on their size.
    /// - Throws: `internalError` if it cannot allocate memory.
    package init(_ encoding: ContentEncoding, ratio: Int = Decompressor.ratio) throws(SluiceError) {
        self.encoding = encoding
        self.ratio = ratio
        format =
            switch encoding {
            case .gzip: try GzipReader()
            case .zstd: try ZstdReader()
            }
    }

    /// Supplies the next piece of the compressed stream. The previous piece must be used up: `next` has returned nil.
    package func feed(_ bytes: [UInt8]) {
        input = bytes
        position = 0
        taken += bytes.count
    }

    /// Returns the next bytes of the stream.
    ///
    /// - Returns: At least one byte; nil if more input is needed.
    /// - Throws: `badCompression` for malformed bytes, `bodyTooLarge` for a stream that grows beyond `ratio`.
    package func next() throws(SluiceError) -> [UInt8]? {
        while position < input.count || isFull {
            let step = try format.step(input, from: position, atMost: Self.chunkBytes)
            position += step.consumed
            isFull = step.output.count == Self.chunkBytes
            given += step.output.count
            guard given <= Self.freeBytes || given / ratio <= taken else {
                throw SluiceError(
                    .bodyTooLarge, "The body's \(taken) bytes of \(encoding.rawValue) become more than \(given).",
                    fix: "Compress it less, or send it plain.")
            }
            if !step.output.isEmpty { return step.output }
            if step.consumed == 0 { break }
        }
        return nil
    }

    /// Checks that the stream is complete.
    ///
    /// - Throws: `badCompression` if it is not at its end.
    package func finish() throws(SluiceError) {
        guard taken == 0 || (format.isAtEnd && position == input.count) else {
            throw SluiceError(
                .badCompression, "The body's \(encoding.rawValue) stream ends in the middle.", fix: "Send the whole stream again.")
        }
    }
}

/// One format of `Decompressor`.
protocol DecompressedFormat: AnyObject {
    /// Decompresses the input from a position on, to at most `limit` bytes.
    func step(_ input: [UInt8], from start: Int, atMost limit: Int) throws(SluiceError) -> (consumed: Int, output: [UInt8])
    /// `true` if the stream so far is complete.
    var isAtEnd: Bool { get }
}
