// WebSocket frames of clients under test by any bytes, as a whole and in pieces. Nothing may crash, or depend on the pieces.
// `make fuzz` runs it with `FrameParser` and `MessageAssembler` in its own module.

import NIOCore
import NIOWebSocket

/// The bound of a frame and of a message, small enough for an input to exceed it.
private let limit = 1 << 12

/// Reads the bytes behind the first one, which has the size of the pieces.
func run(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let (whole, pieces) = (steps(of: stream, piece: max(stream.count, 1)), steps(of: stream, piece: Int(first) + 1))
    if whole != pieces { fatalError("\(whole) as a whole, \(pieces) in pieces") }
    for case .message(let message) in whole where message.readableBytes > limit {
        fatalError("a message of \(message.readableBytes) bytes")
    }
}

/// Returns the steps of a connection up to its end: a violation, a close frame or the last whole frame.
private func steps(of stream: [UInt8], piece: Int) -> [MessageAssembler.Step] {
    var (parser, assembler, steps) = (FrameParser(limit: limit), MessageAssembler(limit: limit), [MessageAssembler.Step]())
    for start in stride(from: 0, to: stream.count, by: piece) {
        parser.append(ByteBuffer(bytes: stream[start..<min(start + piece, stream.count)]))
        do throws(FrameParser.Failure) {
            while let frame = try parser.next() {
                let step = assembler.take(frame)
                steps.append(step)
                switch step {
                case .wait, .message, .ping, .pong: continue
                case .close, .oversize, .malformed, .unacceptable: return steps
                }
            }
        } catch { return steps + [.malformed("\(error)")] }
    }
    return steps
}

/// The name of the inputs in the last line of the output.
let tested = "streams of frames"
