import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
import NIOWebSocket
package import SluiceCore
import SluiceWire

/// A WebSocket over TCP or TLS, subprotocol `sluice.v1`.
package struct WebSocketTransport: SyncTransport {
    /// The default limit for the TCP connection, the TLS handshake and the answer to the upgrade together.
    static let patience = TimeAmount.seconds(15)

    private let tls: ClientTLS
    private let maximumBytes: Int

    /// - Parameters:
    ///   - tls: for `wss://`. The default trusts the system's roots.
    ///   - pins: the keys that the server may have. By default every trusted certificate is accepted.
    ///   - maximumBytes: the bound of one message from the gateway. Beyond it the connection fails with `limitsExceeded`.
    package init(tls: TLSConfiguration = .gatewayClient(), pins: KeyPins = KeyPins([]), maximumBytes: Int = Limits.messageBytes) {
        self.tls = ClientTLS(configuration: tls, pins: pins)
        self.maximumBytes = maximumBytes
    }

    package func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection {
        let url = try SocketURL(request.url)
        let attempt = ConnectionAttempt()
        do {
            return try await withTaskCancellationHandler {
                try await open(url, request, attempt)
            } onCancel: {
                attempt.close()
            }
        } catch let error as SluiceError {
            throw error
        } catch {
            throw attempt.refusal ?? WebSocketTransport.failure(error, isLate: attempt.isLate, request.url)
        }
    }

    static func failure(_ error: any Error, isLate: Bool, _ url: String) -> SluiceError {
        switch error {
        case NIOSSLError.handshakeFailed(_), is NIOSSLExtraError:
            // BoringSSL exposes the reason only in this text.
            SluiceError(
                .tlsHandshakeFailed,
                "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
                    ? "The certificate of \(url) is not trusted." : "The TLS handshake with \(url) failed.", cause: ErrorCause(error))
        case ChannelError.connectTimeout(_),
            _ where isLate:
            SluiceError(.timeout, "\(url) did not answer in time.", fix: "Check the address, and that the gateway runs.")
        default:
            SluiceError(
                .connectionFailed, "\(url) cannot be reached.", fix: "Check the address, and that the gateway runs.",
                cause: ErrorCause(error))
        }
    }

    private enum Upgrade: Sendable {
        case done(InboundQueue, NIOLoopBound<WebSocketHandler>)
        /// The gateway answered without upgrading; the future has its status.
        case refused(EventLoopFuture<String>)
    }

    private func open(_ url: SocketURL, _ request: SyncRequest, _ attempt: ConnectionAttempt) async throws -> any SyncConnection {
        let patience = request.milliseconds.map { TimeAmount.milliseconds(Int64(clamping: $0)) } ?? WebSocketTransport.patience
        // `connectTimeout` ends with the TCP connection. The attempt's deadline also covers TLS and the upgrade.
        let deadline = NIODeadline.now() + patience
        let context = try tls.context(for: url, named: request.url)
        let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(patience)
            .connect(host: url.host, port: url.port) { channel in
                let late = attempt.add(channel, until: deadline)
                return channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let context { try pipeline.addHandler(self.tls.handler(context, host: url.host, attempt)) }
                    var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
                        upgradeConfiguration: self.upgrade(url, request.headers))
                    // A gateway may send frames in the same packet as its answer: pass them to the WebSocket.
                    configuration.leftOverBytesStrategy = .forwardBytes
                    let result = try pipeline.configureUpgradableHTTPClientPipeline(configuration: configuration)
                    result.whenComplete { _ in late.cancel() }
                    return (channel, result)
                }
            }
        switch try await upgrade.1.get() {
        case .done(let queue, let handler): return WebSocketConnection(channel: upgrade.0, queue: queue, handler: handler)
        case .refused(let answer):
            let answer = try await answer.get()
            upgrade.0.close(promise: nil)
            throw SluiceError(.connectionFailed, "The gateway refused the connection: \(answer).")
        }
    }

    private func upgrade(_ url: SocketURL, _ headers: [String: String]) -> NIOTypedHTTPClientUpgradeConfiguration<Upgrade> {
        var fields = HTTPHeaders([("Host", url.authority), ("Content-Length", "0"), ("Sec-WebSocket-Protocol", WireProtocol.name)])
        for (name, value) in headers { fields.replaceOrAdd(name: name, value: value) }
        let maximumBytes = maximumBytes
        let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(
            maxFrameSize: min(maximumBytes, Int(UInt32.max)),
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let queue = InboundQueue()
                    let handler = WebSocketHandler(queue: queue, maximumBytes: maximumBytes)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    // Not by the handler: the connection may have ended before the handler was added.
                    channel.closeFuture.whenComplete { _ in
                        queue.finish(SluiceError(.connectionFailed, "The connection was lost."))
                    }
                    return .done(queue, NIOLoopBound(handler, eventLoop: channel.eventLoop))
                }
            })
        return NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: HTTPRequestHead(version: .http1_1, method: .GET, uri: url.path, headers: fields),
            upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = RefusalHandler(answer: channel.eventLoop.makePromise(of: String.self))
                    do {
                        try channel.pipeline.syncOperations.addHandler(handler)
                    } catch {
                        handler.answer.fail(error)
                        throw error
                    }
                    return .refused(handler.answer.futureResult)
                }
            })
    }
}

/// Captures the status of a response that did not upgrade.
private final class RefusalHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    let answer: EventLoopPromise<String>
    private var text = "it did not answer"

    init(answer: EventLoopPromise<String>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return }
        // The phrase is the server's own text, and reaches the log.
        text = "\(head.status.code) \(String(head.status.reasonPhrase.unicodeScalars.prefix(64)))"
        context.close(promise: nil)
    }

    func handlerRemoved(context: ChannelHandlerContext) { answer.succeed(text) }
}

/// An open WebSocket.
private final class WebSocketConnection: SyncConnection {
    private let channel: any Channel
    private let queue: InboundQueue
    private let handler: NIOLoopBound<WebSocketHandler>

    init(channel: any Channel, queue: InboundQueue, handler: NIOLoopBound<WebSocketHandler>) {
        self.channel = channel
        self.queue = queue
        self.handler = handler
    }

    func send(_ message: [UInt8]) async throws(SluiceError) {
        let frame = WebSocketFrame(
            fin: true, opcode: .binary, maskKey: .random(), data: channel.allocator.buffer(bytes: message))
        do {
            try await channel.writeAndFlush(frame)
        } catch {
            throw SluiceError(.connectionFailed, "A message of \(message.count) bytes could not be sent.", cause: ErrorCause(error))
        }
    }

    func ping() { channel.eventLoop.execute { [handler] in handler.value.ping() } }

    func next() async throws(SluiceError) -> SyncInbound? {
        let (item, mayRead) = try await queue.next()
        if mayRead { channel.eventLoop.execute { [handler] in handler.value.resume() } }
        return item
    }

    func close() {
        queue.finish(nil)
        channel.close(promise: nil)
    }
}
