import HTTPTypes
import NIOCore
import NIOHTTPTypes
import SluiceCore
import SluiceValues

/// Ends requests whose bodies are too slow or take too long (`BodyPace`). Runs on the channel's event loop.
final class RequestWatch: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let bounds: BodyPace.Bounds
    private let ticket: ConnectionTicket
    /// The pace of the body that is being received.
    private var pace: BodyPace?
    private var timer: Scheduled<Void>?
    /// `true` from a request's head until the head of its response.
    private var owesAnswer = false
    private var isOver = false

    init(bounds: BodyPace.Bounds, ticket: ConnectionTicket) {
        self.bounds = bounds
        self.ticket = ticket
    }

    private static var now: UInt64 { NIODeadline.now().uptimeNanoseconds }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Data after the 408 response belongs to no request.
        if isOver { return }
        switch unwrapInboundIn(data) {
        case .head:
            ticket.connections.touch(ticket.id)
            owesAnswer = true
            pace = BodyPace(bounds, now: Self.now)
            arm(context)
        case .body(let bytes): pace?.received(bytes.readableBytes, now: Self.now)
        case .end: stop()
        }
        context.fireChannelRead(data)
    }

    /// Starts the body's clock. A later handler that applies backpressure withholds the read, and no time counts.
    func read(context: ChannelHandlerContext) {
        pace?.reading(now: Self.now)
        if pace != nil, timer == nil { arm(context) }
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Until the next `read` the server does not wait for the peer.
        pace?.received(0, now: Self.now)
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if isOver {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        if case .head = unwrapOutboundIn(data) { owesAnswer = false }
        context.write(data, promise: promise)
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    private func stop() {
        pace = nil
        timer?.cancel()
        timer = nil
    }

    private func arm(_ context: ChannelHandlerContext) {
        guard let left = pace?.left(now: Self.now, isProven: ticket.isProven) else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(Int64(clamping: left))) { [weak self] in
            self?.timer = nil
            self?.check(context)
        }
    }

    private func check(_ context: ChannelHandlerContext) {
        // Bytes received since then have moved the deadline; arm the timer again instead of rescheduling it per read.
        guard let left = pace?.left(now: Self.now, isProven: ticket.isProven) else { return }
        if left == 0 { refuse(context) } else { arm(context) }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        stop()
        isOver = true
        ticket.connections.refused(.bodyTimeout)
        guard owesAnswer else { return context.close(promise: nil) }
        let answer = ErrorResponse(
            SluiceError(
                .requestTimeout, "The body of the request arrived with less than \(bounds.bytesPerSecond) bytes a second, or took too long."
            ))
        let body = ByteBuffer(bytes: answer.json.utf8)
        var head = HTTPResponse(status: answer.status, headerFields: [.contentType: "application/json", .connection: "close"])
        head.headerFields[.contentLength] = String(body.readableBytes)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
    }
}
