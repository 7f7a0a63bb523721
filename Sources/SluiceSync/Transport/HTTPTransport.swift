import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
package import SluiceCore
import Synchronization

/// HTTP/1.1 over TCP or TLS. Each request has its own connection. Follows no redirects and does not retry.
///
/// Waiting uses no processor time, unlike `URLSession` on Linux.
package struct HTTPTransport: Sendable {
    package struct Request: Sendable {
        package var method: String
        /// `http://` or `https://`.
        package var url: String
        package var headers: [String: String]
        package var body: [UInt8]
        /// The limit for connection, request and response together.
        package var milliseconds: UInt64

        package init(method: String, url: String, headers: [String: String] = [:], body: [UInt8] = [], milliseconds: UInt64) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
            self.milliseconds = milliseconds
        }
    }

    package struct Response: Hashable, Sendable {
        package var status: Int
        package var body: [UInt8]
    }

    private let tls: TLSConfiguration
    private let maximumBytes: Int

    /// - Parameters:
    ///   - tls: for `https://`. The default trusts the system's roots.
    ///   - maximumBytes: the bound of the response body. Beyond it `send` throws `limitsExceeded`.
    package init(tls: TLSConfiguration = .makeClientConfiguration(), maximumBytes: Int = Limits.messageBytes) {
        self.tls = tls
        self.maximumBytes = maximumBytes
    }

    /// Sends a request and waits for the whole response.
    /// - Throws: `timeout` after `milliseconds`, `tlsHandshakeFailed`, `connectionFailed`, or `limitsExceeded` if the response is too
    ///   large.
    package func send(_ request: Request) async throws(SluiceError) -> Response {
        let url = try SocketURL(http: request.url)
        let connection = Connection()
        do {
            return try await withTaskCancellationHandler {
                try await exchange(request, url, connection)
            } onCancel: {
                connection.close()
            }
        } catch let error as SluiceError {
            throw error
        } catch {
            throw WebSocketTransport.failure(error, isLate: connection.isLate, request.url)
        }
    }

    private func exchange(_ request: Request, _ url: SocketURL, _ connection: Connection) async throws -> Response {
        let context = url.isSecure ? try NIOSSLContext(configuration: tls) : nil
        let patience = TimeAmount.milliseconds(Int64(clamping: min(request.milliseconds, UInt64(Int64.max / 1_000_000))))
        let maximumBytes = maximumBytes
        let (channel, answer) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(patience)
            .connect(host: url.host, port: url.port) { channel in
                connection.took(channel)
                return channel.eventLoop.makeCompletedFuture {
                    let late = channel.eventLoop.scheduleTask(in: patience) { connection.close(isLate: true) }
                    channel.closeFuture.whenComplete { _ in late.cancel() }
                    let pipeline = channel.pipeline.syncOperations
                    if let context { try pipeline.addHandler(WebSocketTransport.tlsHandler(context, host: url.host)) }
                    try pipeline.addHTTPClientHandlers()
                    let answer = channel.eventLoop.makePromise(of: Response.self)
                    try pipeline.addHandler(ResponseHandler(answer, maximumBytes: maximumBytes))
                    return (channel, answer.futureResult)
                }
            }
        var headers = HTTPHeaders([("Host", url.authority), ("Connection", "close"), ("Content-Length", "\(request.body.count)")])
        for (name, value) in request.headers { headers.replaceOrAdd(name: name, value: value) }
        let head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: url.path, headers: headers)
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        channel.write(HTTPClientRequestPart.body(.byteBuffer(channel.allocator.buffer(bytes: request.body))), promise: nil)
        // A failed write closes the channel, which fails the response promise.
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
        return try await answer.get()
    }

    /// The channel of a request, which cancellation and the timeout close.
    private final class Connection: Sendable {
        private struct State {
            var channel: (any Channel)?
            var isClosed = false
            var isLate = false
        }

        private let state = Mutex(State())

        var isLate: Bool { state.withLock(\.isLate) }

        // Cancellation may arrive before the channel exists; then close it here.
        func took(_ channel: any Channel) {
            let isClosed = state.withLock { state in
                state.channel = channel
                return state.isClosed
            }
            if isClosed { channel.close(promise: nil) }
        }

        func close(isLate: Bool = false) {
            let channel = state.withLock { state in
                state.isClosed = true
                state.isLate = state.isLate || isLate
                return state.channel
            }
            channel?.close(promise: nil)
        }
    }
}

/// Collects one response, then closes the connection.
private final class ResponseHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let maximumBytes: Int
    /// `nil` once completed. `end`, an error and the close may all arrive; the first one counts.
    private var answer: EventLoopPromise<HTTPTransport.Response>?
    private var response = HTTPTransport.Response(status: 0, body: [])

    init(_ answer: EventLoopPromise<HTTPTransport.Response>, maximumBytes: Int) {
        self.answer = answer
        self.maximumBytes = maximumBytes
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): response.status = Int(head.status.code)
        case .body(let part):
            guard response.body.count + part.readableBytes <= maximumBytes else {
                return end(context, .failure(SluiceError(.limitsExceeded, "The answer has more than \(maximumBytes) bytes.")))
            }
            response.body.append(contentsOf: part.readableBytesView)
        case .end: end(context, .success(response))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(context, .failure(error)) }
    func channelInactive(context: ChannelHandlerContext) { end(context, .failure(ChannelError.eof)) }
    func handlerRemoved(context: ChannelHandlerContext) { end(context, .failure(ChannelError.eof)) }

    private func end(_ context: ChannelHandlerContext, _ result: Result<HTTPTransport.Response, any Error>) {
        guard let answer = answer.take() else { return }
        answer.completeWith(result)
        context.close(promise: nil)
    }
}
