package import NIOCore

/// A WebSocket frame of a server in its wire form, encoded once and shared by all who receive it.
///
/// Server frames carry no mask, so the bytes are the same for every client: copying the value copies a reference.
package struct SharedFrame: Sendable {
    /// Header and payload.
    package let bytes: ByteBuffer

    init(bytes: ByteBuffer) { self.bytes = bytes }

    /// What one receiver costs in its outbox.
    package var byteCount: Int { bytes.readableBytes }

    /// Frames one binary message. Cost: one copy of the payload.
    package static func encode(binary payload: [UInt8]) -> SharedFrame {
        var buffer = header(.binary, payloadLength: payload.count)
        buffer.writeBytes(payload)
        return SharedFrame(bytes: buffer)
    }

    /// Frames the readable bytes of a buffer as one binary message. Cost: one copy of the payload.
    package static func encode(binary payload: ByteBuffer) -> SharedFrame {
        var buffer = header(.binary, payloadLength: payload.readableBytes)
        buffer.writeImmutableBuffer(payload)
        return SharedFrame(bytes: buffer)
    }

    /// Several frames in one buffer, to be written and flushed once. Join once per group of receivers that get the same
    /// frames: that is what makes fan-out cheap. One frame is returned as it is.
    package static func join(_ frames: [SharedFrame]) -> SharedFrame {
        if frames.count == 1 { return frames[0] }
        var buffer = ByteBufferAllocator().buffer(capacity: frames.reduce(0) { $0 + $1.byteCount })
        for frame in frames { buffer.writeImmutableBuffer(frame.bytes) }
        return SharedFrame(bytes: buffer)
    }
}

extension SharedFrame {
    enum Opcode: UInt8 {
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA
    }

    static let ping = SharedFrame(bytes: header(.ping, payloadLength: 0))

    /// - Precondition: at most 125 bytes, which is what a ping can have carried.
    static func pong(_ payload: ByteBuffer) -> SharedFrame {
        var buffer = header(.pong, payloadLength: payload.readableBytes)
        buffer.writeImmutableBuffer(payload)
        return SharedFrame(bytes: buffer)
    }

    /// A close frame; the reason is cut to the 123 bytes that fit, at a character's end.
    static func close(_ code: UInt16, reason: String) -> SharedFrame {
        var text = ""
        for character in reason where text.utf8.count + character.utf8.count <= 123 { text.append(character) }
        var buffer = header(.close, payloadLength: 2 + text.utf8.count)
        buffer.writeInteger(code)
        buffer.writeString(text)
        return SharedFrame(bytes: buffer)
    }

    /// A buffer with the header, with room for the payload.
    private static func header(_ opcode: Opcode, payloadLength: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: payloadLength + 10)
        buffer.writeInteger(0x80 | opcode.rawValue)
        switch payloadLength {
        case ...125:
            buffer.writeInteger(UInt8(payloadLength))
        case ...0xFFFF:
            buffer.writeInteger(UInt8(126))
            buffer.writeInteger(UInt16(payloadLength))
        default:
            buffer.writeInteger(UInt8(127))
            buffer.writeInteger(UInt64(payloadLength))
        }
        return buffer
    }
}
