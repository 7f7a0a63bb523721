import NIOCore
import NIOWebSocket

/// Joins the fragments of messages and checks each frame against the protocol (RFC 6455, section 5). Pure.
struct MessageAssembler {
    enum Step: Equatable {
        /// No action yet.
        case wait
        case message(ByteBuffer)
        case ping(ByteBuffer)
        case pong
        case close(code: UInt16?)
        case oversize
        case malformed(String)
        /// A text message. sluice.v1 has none.
        case unacceptable
    }

    /// The maximum size of one message, in bytes.
    var limit: Int
    private var fragments: ByteBuffer?

    init(limit: Int) { self.limit = limit }

    mutating func take(_ frame: WebSocketFrame) -> Step {
        guard frame.maskKey != nil else { return .malformed("a client's frame is not masked") }
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return .malformed("a reserved bit is set and no extension was agreed") }
        switch frame.opcode {
        case .binary: return begin(frame)
        case .continuation: return proceed(frame)
        case .text: return .unacceptable
        case .ping: return .ping(frame.unmaskedData)
        case .pong: return .pong
        case .connectionClose: return close(frame.unmaskedData)
        default: return .malformed("opcode \(frame.opcode) is reserved")
        }
    }

    private mutating func begin(_ frame: WebSocketFrame) -> Step {
        guard fragments == nil else { return .malformed("a message begins before the one before it is complete") }
        let data = frame.unmaskedData
        guard data.readableBytes <= limit else { return .oversize }
        if frame.fin { return .message(data) }
        fragments = data
        return .wait
    }

    private mutating func proceed(_ frame: WebSocketFrame) -> Step {
        guard var joined = fragments.take() else { return .malformed("a continuation continues nothing") }
        guard joined.readableBytes + frame.data.readableBytes <= limit else { return .oversize }
        joined.writeImmutableBuffer(frame.unmaskedData)
        if frame.fin { return .message(joined) }
        fragments = joined
        return .wait
    }

    private func close(_ data: ByteBuffer) -> Step {
        switch data.readableBytes {
        case 0: .close(code: nil)
        case 1: .malformed("a close frame has half a code")
        default: .close(code: data.getInteger(at: data.readerIndex, as: UInt16.self))
        }
    }
}
