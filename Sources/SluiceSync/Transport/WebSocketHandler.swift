import NIOCore
import NIOWebSocket
import SluiceCore

/// The last handler of a client connection's pipeline: joins fragments to messages and answers pings. It stops reading while the queue is
/// full. Runs on the channel's event loop.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let queue: InboundQueue
    private let maximumBytes: Int
    private var context: ChannelHandlerContext?
    private var fragments: ByteBuffer?
    private var isReadWanted = false
    private var isPinging = false
    /// The newest ping to answer once the socket is writable. Older ones need no answer (RFC 6455, 5.5.3).
    private var owedPong: ByteBuffer?

    init(queue: InboundQueue, maximumBytes: Int) {
        self.queue = queue
        self.maximumBytes = maximumBytes
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    // MARK: Backpressure

    func read(context: ChannelHandlerContext) {
        // The channel reads its socket only on request. Withhold the request while the queue is full.
        if queue.hasRoom { context.read() } else { isReadWanted = true }
    }

    /// Resumes reading once the queue has room again.
    func resume() {
        guard isReadWanted, let context, queue.hasRoom else { return }
        isReadWanted = false
        context.read()
    }

    // MARK: Frames

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var frame = unwrapInboundIn(data)
        var content = frame.unmaskedData
        if let key = frame.maskKey { frame.data.webSocketUnmask(key) }
        switch frame.opcode {
        case .binary where fragments == nil: join(ByteBuffer(), &content, isLast: frame.fin, context: context)
        case .continuation:
            guard let begun = fragments else { return fail("a continuation of nothing", context: context) }
            join(begun, &content, isLast: frame.fin, context: context)
        case .ping: answer(content, context: context)
        case .pong:
            if isPinging { queue.push(.pong) }
            isPinging = false
        case .connectionClose:
            let code = content.readWebSocketErrorCode()
            let reason = content.readString(length: content.readableBytes) ?? ""
            end(code: code, reason: reason, context: context)
        default: fail("a frame of the kind \(frame.opcode)", context: context)
        }
    }

    private func join(_ begun: ByteBuffer, _ content: inout ByteBuffer, isLast: Bool, context: ChannelHandlerContext) {
        var message = begun
        guard message.readableBytes + content.readableBytes <= maximumBytes else {
            queue.finish(SluiceError(.limitsExceeded, "The gateway sent a message of more than \(maximumBytes) bytes."))
            close(.messageTooLarge, context: context)
            return
        }
        message.writeBuffer(&content)
        if isLast {
            fragments = nil
            queue.push(.message(Array(buffer: message)))
        } else {
            fragments = message
        }
    }

    private func answer(_ payload: ByteBuffer, context: ChannelHandlerContext) {
        // A gateway that pings without reading must not fill the memory with pongs.
        if context.channel.isWritable { write(.pong, payload, context: context) } else { owedPong = payload }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, let payload = owedPong.take() { write(.pong, payload, context: context) }
        context.fireChannelWritabilityChanged()
    }

    private func fail(_ what: String, context: ChannelHandlerContext) {
        // Before the close: the first end of the queue counts, and this one has the reason.
        queue.finish(.init(.badSyntax, "The gateway sent \(what)."))
        close(.protocolError, context: context)
    }

    private func end(code: WebSocketErrorCode?, reason: String, context: ChannelHandlerContext) {
        switch code {
        case nil, .normalClosure, .goingAway: queue.finish(nil)
        case .some(let code): queue.finish(SluiceError(.connectionFailed, "The gateway closed the connection: \(code) \(reason)."))
        }
        close(.normalClosure, context: context)
    }

    private func close(_ code: WebSocketErrorCode, context: ChannelHandlerContext) {
        var content = context.channel.allocator.buffer(capacity: 2)
        content.write(webSocketErrorCode: code)
        write(.connectionClose, content, context: context)
        context.close(promise: nil)
    }

    private func write(_ opcode: WebSocketOpcode, _ content: ByteBuffer, context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: content)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    func ping() {
        guard let context else { return }
        isPinging = true
        write(.ping, ByteBuffer(), context: context)
    }

    // MARK: Errors

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        queue.finish(SluiceError(.connectionFailed, "The connection broke.", cause: ErrorCause(error)))
        context.close(promise: nil)
    }
}
