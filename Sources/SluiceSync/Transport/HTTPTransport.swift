import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
package import SluiceCore

/// HTTP/1.1 over TCP or TLS. Each request has its own connection. Follows redirects and does not retry. Connects directly: proxies of the
/// environment, such as `http_proxy`, have no effect.
///
/// Waiting uses no processor time, unlike `URLSession` on Linux.
package struct HTTPTransport: Sendable {
    package struct Request: Sendable {
        package var method: String
        /// `http://` or `https://`.
        package var url: String
        package var headers: [String: String]
        package var body: [UInt8]
        /// The limit for connections, requests and responses together, redirects included.
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
        /// The field `Location`, the target of a redirect.
        var location: String?
    }

    private let tls: ClientTLS
    private let maximumBytes: Int

    /// - Parameters:
    ///   - tls: for `https://`. The default trusts the system's roots.
    ///   - pins: the keys that the server may have, also after a redirect. By default every trusted certificate is accepted.
    ///   - maximumBytes: the bound of the response body. Beyond it `send` throws `limitsExceeded`.
    package init(tls: TLSConfiguration = .gatewayClient(), pins: KeyPins = KeyPins([]), maximumBytes: Int = Limits.messageBytes) {
        self.tls = ClientTLS(configuration: tls, pins: pins)
        self.maximumBytes = maximumBytes
    }

    /// Sends a request and waits for the whole response. Follows up to `mostRedirects` redirects.
    /// - Throws: `timeout` after `milliseconds`, `tlsHandshakeFailed`, `connectionFailed`, or `limitsExceeded` if the response is too
    ///   large.
    package func send(_ request: Request) async throws(SluiceError) -> Response {
        let deadline = NIODeadline.now() + TimeAmount.milliseconds(Int64(clamping: request.milliseconds))
        var hop = Hop(request: request, url: try SocketURL(http: request.url))
        for _ in 0...HTTPTransport.mostRedirects {
            let response = try await perform(hop, deadline)
            guard let next = try hop.next(after: response) else { return response }
            hop = next
        }
        throw SluiceError(
            .connectionFailed,
            "\(request.url) redirects more than \(HTTPTransport.mostRedirects) times; the last target is \(hop.request.url).",
            fix: "Use the gateway's own address, and check the redirects of the proxy.")
    }

    private func perform(_ hop: Hop, _ deadline: NIODeadline) async throws(SluiceError) -> Response {
        let attempt = ConnectionAttempt()
        do {
            return try await withTaskCancellationHandler {
                try await exchange(hop.request, hop.url, attempt, deadline)
            } onCancel: {
                attempt.close()
            }
        } catch let error as SluiceError {
            throw error
        } catch {
            throw attempt.refusal ?? WebSocketTransport.failure(error, isLate: attempt.isLate, hop.request.url)
        }
    }

    private func exchange(
        _ request: Request, _ url: SocketURL, _ attempt: ConnectionAttempt, _ deadline: NIODeadline
    ) async throws -> Response {
        let context = try tls.context(for: url, named: request.url)
        let patience = max(deadline - NIODeadline.now(), TimeAmount.nanoseconds(0))
        let (tls, maximumBytes) = (tls, maximumBytes)
        let (channel, answer) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(patience)
            .connect(host: url.host, port: url.port) { channel in
                attempt.add(channel, until: deadline)
                return channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let context { try pipeline.addHandler(tls.handler(context, host: url.host, attempt)) }
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
        case .head(let head):
            response.status = Int(head.status.code)
            response.location = head.headers.first(name: "Location")
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
