import NIOCore

/// Holds a new connection to sending its first request in time, and closes it at once when the server stops before.
/// Removed when the connection has become HTTP or WebSocket.
final class FirstRequestGuard: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let patience: TimeAmount
    private var deadline: Scheduled<Void>?

    init(patience: TimeAmount) { self.patience = patience }

    func handlerAdded(context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: patience) { context.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent, ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }
}

extension ChannelPipeline.SynchronousOperations {
    func removeFirstRequestGuard() {
        guard let handler = try? handler(type: FirstRequestGuard.self) else { return }
        removeHandler(handler, promise: nil)
    }
}
