package import NIOCore

/// A WebSocket frame of a server in wire form, encoded once and shared by all receivers.
///
/// Server frames have no mask, so the bytes are equal for every client. A copy of the value shares the buffer.
package struct SharedFrame: Sendable {
    /// Header and payload.
    package let bytes: ByteBuffer

    init(bytes: ByteBuffer) { self.bytes = bytes }

    /// The bytes that the frame takes in one receiver's outbox.
    package var byteCount: Int { bytes.readableBytes }

    /// Encodes one binary message. Cost: one copy of the payload.
    package static func encode(binary payload: [UInt8]) -> SharedFrame {
        var buffer = header(.binary, payloadLength: payload.count)
        buffer.writeBytes(payload)
        return SharedFrame(bytes: buffer)
    }

    /// Encodes the readable bytes of a buffer as one binary message. Cost: one copy of the payload.
    package static func encode(binary payload: ByteBuffer) -> SharedFrame {
        var buffer = header(.binary, payloadLength: payload.readableBytes)
        buffer.writeImmutableBuffer(payload)
        return SharedFrame(bytes: buffer)
    }

    /// Joins several frames in one buffer, for a single write and flush. Join once per group of receivers of the same frames: this makes
    /// fan-out cheap. Returns a single frame unchanged.
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

    /// - Precondition: at most 125 bytes, the maximum of a ping's payload.
    static func pong(_ payload: ByteBuffer) -> SharedFrame {
        var buffer = header(.pong, payloadLength: payload.readableBytes)
        buffer.writeImmutableBuffer(payload)
        return SharedFrame(bytes: buffer)
    }

    /// Encodes a close frame. Cuts the reason to the 123 bytes that fit, at a character boundary.
    static func close(_ code: UInt16, reason: String) -> SharedFrame {
        var text = ""
        for character in reason {
            guard text.utf8.count + character.utf8.count <= 123 else { break }
            text.append(character)
        }
        var buffer = header(.close, payloadLength: 2 + text.utf8.count)
        buffer.writeInteger(code)
        buffer.writeString(text)
        return SharedFrame(bytes: buffer)
    }

    /// Returns a buffer with the header and capacity for the payload.
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
