// Compressed bodies under test by any bytes: gzip and zstd in pieces of any size, and the bodies of Realm's protocol. Nothing may crash, or
// depend on the pieces. `make fuzz` runs it.

import SluiceCompression
import SluiceCore

private enum Outcome: Equatable {
    case given([UInt8])
    case failed(ErrorCode)
}

/// Decompresses a body. The first byte has the encoding and the size of the pieces.
func run(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let (body, encoding) = (Array(bytes.dropFirst()), first & 1 == 0 ? ContentEncoding.gzip : .zstd)
    let whole = outcome(body, encoding, piece: max(body.count, 1))
    let pieces = outcome(body, encoding, piece: Int(first >> 1) + 1)
    if whole != pieces { fatalError("\(encoding): another outcome in pieces of \(Int(first >> 1) + 1) bytes") }
    if let plain = try? Zlib().decompress(body, count: 64 << 10), plain.count != 64 << 10 { fatalError("\(plain.count) bytes") }
}

/// Returns the first MiB of the decompressed bytes, or the code of the error. The decompressor bounds the growth of a stream.
private func outcome(_ body: [UInt8], _ encoding: ContentEncoding, piece: Int) -> Outcome {
    var all: [UInt8] = []
    do throws(SluiceError) {
        let decompressor = try Decompressor(encoding)
        for start in stride(from: 0, to: body.count, by: piece) {
            decompressor.feed(Array(body[start..<min(start + piece, body.count)]))
            while let chunk = try decompressor.next() {
                if chunk.isEmpty || chunk.count > Decompressor.chunkBytes { fatalError("a chunk of \(chunk.count) bytes") }
                if all.count < 1 << 20 { all += chunk }
            }
        }
        try decompressor.finish()
        return .given(all)
    } catch {
        if ![.badCompression, .bodyTooLarge].contains(error.code) || error.message.isEmpty { fatalError("an error: \(error)") }
        return .failed(error.code)
    }
}

/// The name of the inputs in the last line of the output.
let tested = "compressed bodies"
