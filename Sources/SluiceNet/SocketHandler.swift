import NIOCore
import NIOWebSocket

/// The last handler of an upgraded connection: WebSocket frames in, shared frames out. Runs on the channel's event loop.
final class SocketHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        case open
        /// The close frame was sent. The peer's answer, or the grace period, ends the connection.
        case closing(SocketCloseReason)
        case closed
    }

    private let limits: WebSocketLimits
    private var state = State.open
    private var owner: (any SocketOwner)?
    private var socket: ServerSocket?
    private var context: ChannelHandlerContext?
    private let ticket: ConnectionTicket
    private let deadline: NIODeadline
    private var parser: FrameParser
    private var assembler: MessageAssembler
    private var isAuthenticated = false
    /// `true` from a peer's first message until it has authenticated. Further data stays in the parser and in the kernel's buffer.
    private var isHeld = false
    /// The number of pings sent since the last data. Counted, not timed: after a pause of the whole machine every peer would seem silent.
    private var unansweredPings = 0
    private var isPaused = false
    /// `true` while a shutdown waits for the answers to the messages received. What is not read yet stays with the peer, which sends it
    /// to another server.
    private var isSettling = false
    /// `true` once the parser has lost its place in the stream. Later data cannot be interpreted.
    private var decoderIsBroken = false
    /// The newest ping to answer once the connection is writable. Older ones need no answer (RFC 6455, 5.5.3).
    private var owedPong: ByteBuffer?
    private var pulse: Scheduled<Void>?
    private var hardClose: Scheduled<Void>?
    private var opening: Scheduled<Void>?
    /// The timers of a shutdown: for the beginning of the close, and for its deadline.
    private var leaving: [Scheduled<Void>] = []

    /// - Parameter deadline: for the peer's first whole message.
    init(owner: any SocketOwner, limits: WebSocketLimits, ticket: ConnectionTicket, deadline: NIODeadline) {
        self.owner = owner
        self.limits = limits
        self.ticket = ticket
        self.deadline = deadline
        parser = FrameParser(limit: limits.openingBytes)
        assembler = MessageAssembler(limit: limits.openingBytes)
    }

    // MARK: Called by the socket

    func write(_ frame: SharedFrame) {
        guard case .open = state, let context else {
            socket?.release(frame)
            return
        }
        flush(frame, context)
    }

    func setReading(_ reads: Bool) {
        guard case .open = state, isPaused == reads else { return }
        isPaused = !reads
        updateReading()
    }

    func authenticated() {
        guard case .open = state, !isAuthenticated, let context else { return }
        isAuthenticated = true
        opening?.cancel()
        ticket.authenticate()
        // The larger limits apply before `proceed` parses the held frames.
        parser.limit = limits.messageBytes
        assembler.limit = limits.messageBytes
        release()
        proceed(context)
    }

    private func release() {
        isHeld = false
        updateReading()
    }

    private func updateReading() {
        unansweredPings = 0
        // The option fails on a channel that is closing, which has no consequence.
        _ = context?.channel.setOption(.autoRead, value: !isPaused && !isHeld && !isSettling)
    }

    func close(_ code: SocketCloseCode, reason: String, because cause: SocketCloseReason, last: [UInt8]? = nil) {
        guard case .open = state, let context else { return }
        // Reading must continue, or the peer's close frame would never arrive.
        isSettling = false
        setReading(true)
        release()
        state = .closing(cause)
        pulse?.cancel()
        opening?.cancel()
        if let last { flush(reserved(.encode(binary: last)), context) }
        flush(reserved(.close(code.rawValue, reason: reason)), context)
        if decoderIsBroken {
            // The peer's close frame cannot be parsed any more. Closing now would reset the connection, and the peer might lose the last
            // message. Close only the output.
            context.close(mode: .output, promise: nil)
        }
        hardClose = context.eventLoop.assumeIsolated().scheduleTask(in: limits.closeGrace) { context.close(promise: nil) }
        // The peer's close frame may be in the parser already.
        proceed(context)
    }

    private func reserved(_ frame: SharedFrame) -> SharedFrame {
        socket?.reserveControl(frame)
        return frame
    }

    private func flush(_ frame: SharedFrame, _ context: ChannelHandlerContext) {
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { [socket] _ in socket?.release(frame) }
        context.writeAndFlush(wrapOutboundOut(frame.bytes), promise: promise)
    }

    // MARK: Called by the pipeline

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let socket = ServerSocket(channel: context.channel, handler: self, calls: ticket.connections.calls(on: context.eventLoop))
        self.socket = socket
        scheduleBeat(context)
        // `finish` cancels the timers. Weak references would slow each use of the handler down.
        opening = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.isLate() }
        // The event of a shutdown that has begun went to the handler before this one.
        if ticket.connections.isStopping { prepareToLeave(context) }
        // Last: the owner may send or close at once.
        owner?.opened(socket)
    }

    func handlerRemoved(context: ChannelHandlerContext) { finish(.lost("the connection's handler was removed")) }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.lost("the connection ended"))
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unansweredPings = 0
        if decoderIsBroken { return }
        parser.append(unwrapInboundIn(data))
        proceed(context)
    }

    /// Handles the complete frames. Stops while the peer must authenticate first, and while a shutdown waits for answers.
    private func proceed(_ context: ChannelHandlerContext) {
        while !isHeld, !isSettling, !decoderIsBroken {
            do throws(FrameParser.Failure) {
                guard let frame = try parser.next() else { return }
                receive(frame, context)
            } catch {
                decoderIsBroken = true
                parser.clear()
                fail(error)
            }
        }
    }

    private func receive(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        guard case .open = state else {
            if case .closing = state, frame.opcode == .connectionClose { context.close(promise: nil) }
            return
        }
        switch assembler.take(frame) {
        case .wait, .pong: break
        case .message(let bytes): take(bytes)
        case .ping(let payload): answer(payload, context)
        case .close(let code): goodbye(code, context)
        case .oversize: refuseOversize()
        case .malformed(let how): refuse(how)
        case .unacceptable: close(.unacceptableData, reason: "binary messages only", because: .malformed("a text message"))
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .open = state {
            if context.channel.isWritable, let payload = owedPong.take() { flush(reserved(.pong(payload)), context) }
            owner?.writabilityChanged(context.channel.isWritable)
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed:
            if case .open = state { state = .closing(.lost("the peer ended the connection")) }
            context.close(promise: nil)
        case is ChannelShouldQuiesceEvent:
            prepareToLeave(context)
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard case .open = state else { return }
        state = .closing(.lost("\(error)"))
        context.close(promise: nil)
    }

    // MARK: Shutdown of the server

    /// Schedules the close at a moment of its own.
    private func prepareToLeave(_ context: ChannelHandlerContext) {
        guard case .open = state, leaving.isEmpty else { return }
        let pace = ticket.connections.pace
        let loop = context.eventLoop.assumeIsolated()
        leaving = [
            loop.scheduleTask(in: pace.moment(random: .random(in: 0 ... .max))) { self.settle() },
            loop.scheduleTask(in: pace.answers) { self.leave(isAnswered: false) },
        ]
    }

    private func settle() {
        guard case .open = state, let owner, let socket else { return }
        isSettling = true
        updateReading()
        owner.settle { socket.leave() }
    }

    func leave(isAnswered: Bool) {
        guard case .open = state else { return }
        ticket.leave(isAnswered: isAnswered)
        close(owner?.shutdownCode ?? .goingAway, reason: "the server is stopping", because: .shutdown, last: owner?.shuttingDown())
    }

    // MARK: Steps

    private func take(_ message: ByteBuffer) {
        if !isAuthenticated {
            // From here on, the owner is responsible for the deadline.
            opening?.cancel()
            isHeld = true
            updateReading()
        }
        owner?.message(message)
    }

    private func fail(_ failure: FrameParser.Failure) {
        guard case .open = state else { return }
        switch failure {
        case .tooLong: refuseOversize()
        case .badControl: refuse("a control frame is fragmented or too long")
        }
    }

    private func isLate() {
        ticket.connections.refused(.openingTimeout)
        close(.policyViolation, reason: "no first message in time", because: .late, last: owner?.refused(.late))
    }

    private func answer(_ payload: ByteBuffer, _ context: ChannelHandlerContext) {
        // A peer that pings without reading must not fill the outbox with pongs.
        if context.channel.isWritable { flush(reserved(.pong(payload)), context) } else { owedPong = payload }
    }

    private func goodbye(_ code: UInt16?, _ context: ChannelHandlerContext) {
        state = .closing(.peer(code: code))
        pulse?.cancel()
        flush(reserved(.close(code ?? SocketCloseCode.normal.rawValue, reason: "")), context)
        context.close(promise: nil)
    }

    private func refuseOversize() {
        let reason = "a message is over \(parser.limit) bytes"
        guard !isAuthenticated else { return close(.messageTooBig, reason: reason, because: .oversize, last: owner?.oversize()) }
        ticket.connections.refused(.openingTooLarge)
        close(.messageTooBig, reason: reason, because: .oversize, last: owner?.refused(.tooLarge))
    }

    private func refuse(_ how: String) { close(.protocolError, reason: how, because: .malformed(how)) }

    private func scheduleBeat(_ context: ChannelHandlerContext) {
        pulse = context.eventLoop.assumeIsolated().scheduleTask(in: limits.pingInterval) { self.beat() }
    }

    private func beat() {
        guard case .open = state, let context else { return }
        scheduleBeat(context)
        // A connection that is not read cannot answer; its silence does not count.
        if isPaused || isHeld || isSettling { return }
        if unansweredPings >= limits.patience {
            pulse?.cancel()
            state = .closing(.silent)
            context.close(promise: nil)
            return
        }
        unansweredPings += 1
        // A peer that does not read needs no further ping.
        if context.channel.isWritable { flush(reserved(.ping), context) }
    }

    private func finish(_ otherwise: SocketCloseReason) {
        let reason: SocketCloseReason
        switch state {
        case .open: reason = otherwise
        case .closing(let cause): reason = cause
        case .closed: return
        }
        state = .closed
        pulse?.cancel()
        opening?.cancel()
        hardClose?.cancel()
        for timer in leaving { timer.cancel() }
        context = nil
        parser.clear()
        owedPong = nil
        // The owner may keep the socket, which refers to this handler: break the cycle.
        socket = nil
        owner.take()?.closed(reason)
    }
}
