package import SluiceCore

/// Decompresses a stream piece by piece: bytes are given to it by `feed`, and taken by `next` until that has none.
///
/// Memory is one piece, one chunk (`chunkBytes`) and the format's window (32 KiB for gzip, 8 MiB for zstd, what RFC 8878 asks
/// decoders to bear). A stream that grows beyond `ratio` times its own size, once it has given `freeBytes`, is refused: no honest
/// records compress like that, and such a stream would keep a processor busy for the price of a few bytes.
/// Streams that follow each other without a gap, as both formats allow, are one.
package final class Decompressor {
    /// Bytes that `next` gives at most.
    package static let chunkBytes = 64 << 10
    /// The most that a stream may grow, once it has given `freeBytes`.
    package static let ratio = 250
    package static let freeBytes = 32 << 20

    private let format: any DecompressedFormat
    private let encoding: ContentEncoding
    private var input: [UInt8] = []
    private var position = 0
    private var taken = 0
    private var given = 0
    /// Whether the last chunk was filled, so that there may be more inside the format without more input.
    private var isFull = false

    /// - Throws: `internalError` when there is no memory for it.
    package init(_ encoding: ContentEncoding) throws(SluiceError) {
        self.encoding = encoding
        format =
            switch encoding {
            case .gzip: try GzipReader()
            case .zstd: try ZstdReader()
            }
    }

    /// Gives the next piece of the compressed stream. What was fed before must have been taken: `next` returned nil.
    package func feed(_ bytes: [UInt8]) {
        input = bytes
        position = 0
        taken += bytes.count
    }

    /// The next bytes of the stream.
    /// - Returns: nil when more input is needed, else at least one byte.
    /// - Throws: `badCompression` for bytes that are none of the format, `bodyTooLarge` for a stream that grows beyond `ratio`.
    package func next() throws(SluiceError) -> [UInt8]? {
        while position < input.count || isFull {
            let step = try format.step(input, from: position, atMost: Self.chunkBytes)
            position += step.consumed
            isFull = step.output.count == Self.chunkBytes
            given += step.output.count
            guard given <= Self.freeBytes || given / Self.ratio <= taken else {
                throw SluiceError(
                    .bodyTooLarge, "The body's \(taken) bytes of \(encoding.rawValue) become more than \(given).",
                    fix: "Compress it less, or send it plain.")
            }
            if !step.output.isEmpty { return step.output }
            if step.consumed == 0 { break }
        }
        return nil
    }

    /// - Throws: `badCompression` when the stream is not at its end.
    package func finish() throws(SluiceError) {
        guard taken == 0 || (format.isAtEnd && position == input.count) else {
            throw SluiceError(
                .badCompression, "The body's \(encoding.rawValue) stream ends in the middle.", fix: "Send the whole stream again.")
        }
    }
}

/// One format of `Decompressor`.
protocol DecompressedFormat: AnyObject {
    /// Decompresses from a place of the input on.
    func step(_ input: [UInt8], from start: Int, atMost limit: Int) throws(SluiceError) -> (consumed: Int, output: [UInt8])
    /// Whether everything so far is whole.
    var isAtEnd: Bool { get }
}
