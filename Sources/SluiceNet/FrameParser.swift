import NIOCore
import NIOWebSocket

/// Splits a client's bytes into frames (RFC 6455, 5.2). Pure.
///
/// The limit may change between two frames, which NIO's decoder does not allow: an authenticated peer may send larger frames.
struct FrameParser {
    /// The violation, from which the handler takes the close code. A type beside `SluiceError`, because the peer gets no text.
    enum Failure: Error {
        /// A frame announces more bytes than the limit.
        case tooLong
        /// A control frame is fragmented or has more than 125 bytes.
        case badControl
    }

    /// The maximum payload of one frame, in bytes.
    var limit: Int
    private var buffer = ByteBuffer()

    init(limit: Int) { self.limit = limit }

    mutating func append(_ bytes: ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.discardReadBytes()
            buffer.writeImmutableBuffer(bytes)
        }
    }

    /// Drops the bytes that were not parsed.
    mutating func clear() { buffer = ByteBuffer() }

    /// Returns the next frame, or `nil` until it is complete.
    mutating func next() throws(Failure) -> WebSocketFrame? {
        guard let header = header() else { return nil }
        let isControl = header.opcode & 0x8 != 0
        if isControl, !header.fin || header.length > 125 { throw .badControl }
        // Checked by the announced length, before the payload is buffered.
        guard header.length <= UInt64(limit) else { throw .tooLong }
        let length = Int(header.length)
        guard buffer.readableBytes >= header.bytes + length else { return nil }
        buffer.moveReaderIndex(forwardBy: header.bytes - (header.isMasked ? 4 : 0))
        let mask = header.isMasked ? buffer.readBytes(length: 4) : nil
        guard let payload = buffer.readSlice(length: length), let opcode = WebSocketOpcode(encodedWebSocketOpcode: header.opcode) else {
            return nil
        }
        return WebSocketFrame(
            fin: header.fin, rsv1: header.reserved & 0x40 != 0, rsv2: header.reserved & 0x20 != 0, rsv3: header.reserved & 0x10 != 0,
            opcode: opcode, maskKey: mask.flatMap { WebSocketMaskingKey($0) }, data: payload)
    }

    private struct Header {
        var fin: Bool
        var reserved: UInt8
        var opcode: UInt8
        var isMasked: Bool
        var length: UInt64
        /// The size of the header itself, with the mask.
        var bytes: Int
    }

    private func header() -> Header? {
        let start = buffer.readerIndex
        guard let first: UInt8 = buffer.getInteger(at: start), let second: UInt8 = buffer.getInteger(at: start + 1) else { return nil }
        var length = UInt64(second & 0x7F)
        var bytes = 2
        switch length {
        case 126:
            guard let long: UInt16 = buffer.getInteger(at: start + 2) else { return nil }
            (length, bytes) = (UInt64(long), 4)
        case 127:
            guard let long: UInt64 = buffer.getInteger(at: start + 2) else { return nil }
            (length, bytes) = (long, 10)
        default: break
        }
        let isMasked = second & 0x80 != 0
        return Header(
            fin: first & 0x80 != 0, reserved: first & 0x70, opcode: first & 0x0F, isMasked: isMasked, length: length,
            bytes: bytes + (isMasked ? 4 : 0))
    }
}
