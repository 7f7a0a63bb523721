import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// A small HTTP server on a free port; what it answers is said by the path that the client asks for.
final class TestHTTPServer: Sendable {
    /// The requests of `/together` that are answered at once, when all of them have arrived.
    static let crowd = 20
    /// A thousand zeros, compressed.
    static let compressed: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 99, 96, 24, 5, 163, 96, 20, 12, 119, 0,
        0, 128, 23, 11, 6, 232, 3, 0, 0,
    ]

    private struct State {
        var channel: (any Channel)?
        var received: [HTTPRequestHead] = []
        var connections: [EventLoopFuture<Void>] = []
        var held: [EventLoopPromise<Void>] = []
    }

    private let state = Mutex(State())
    /// The requests that have arrived whole.
    let arrivals: AsyncStream<HTTPRequestHead>
    private let arrival: AsyncStream<HTTPRequestHead>.Continuation

    private init() {
        (arrivals, arrival) = AsyncStream<HTTPRequestHead>.makeStream(bufferingPolicy: .bufferingOldest(1_000))
    }

    /// - Parameter tls: when it speaks nothing else.
    static func with(tls: TLSConfiguration? = nil, _ body: (TestHTTPServer) async throws -> Void) async throws {
        let server = TestHTTPServer()
        try await server.start(tls)
        do {
            try await body(server)
        } catch {
            try await server.stop()
            throw error
        }
        try await server.stop()
    }

    var port: Int { state.withLock { $0.channel?.localAddress?.port } ?? 0 }
    var url: String { "http://127.0.0.1:\(port)" }
    var received: [HTTPRequestHead] { state.withLock(\.received) }
    var connections: Int { state.withLock { $0.connections.count } }

    /// Waits until every connection that was accepted is closed.
    func closed() async throws {
        for connection in state.withLock(\.connections) { try await connection.get() }
    }

    private func start(_ tls: TLSConfiguration?) async throws {
        let secure = try tls.map { try NIOSSLContext(configuration: $0) }
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { [self] channel in
                state.withLock { $0.connections.append(channel.closeFuture) }
                return channel.eventLoop.makeCompletedFuture {
                    if let secure { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: secure)) }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(AnswerHandler(server: self))
                }
            }
            .bind(host: tls == nil ? "127.0.0.1" : "0.0.0.0", port: 0).get()
        state.withLock { $0.channel = server }
    }

    private func stop() async throws {
        let (channel, held) = state.withLock { state in
            defer { state.held = [] }
            return (state.channel, state.held)
        }
        for promise in held { promise.succeed(()) }
        try await channel?.close().get()
    }

    fileprivate func take(_ head: HTTPRequestHead) {
        state.withLock { $0.received.append(head) }
        arrival.yield(head)
    }

    /// Succeeds the promises of a whole crowd at once.
    fileprivate func hold(_ promise: EventLoopPromise<Void>) {
        let ready = state.withLock { state -> [EventLoopPromise<Void>] in
            state.held.append(promise)
            guard state.held.count == TestHTTPServer.crowd else { return [] }
            defer { state.held = [] }
            return state.held
        }
        for promise in ready { promise.succeed(()) }
    }
}

/// Answers once the request is complete.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let server: TestHTTPServer
    private var head: HTTPRequestHead?
    private var body = ByteBuffer()

    init(server: TestHTTPServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(var part): body.writeBuffer(&part)
        case .end:
            guard let head else { return }
            server.take(head)
            answer(head, context)
        }
    }

    /// Writes pieces of a body until the client closes.
    private func goOn(_ context: ChannelHandlerContext) {
        let piece = ByteBuffer(repeating: 0, count: 64 << 10)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece)))).assumeIsolated().whenSuccess { self.goOn(context) }
    }

    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        switch head.uri {
        case "/never": break
        case "/close": context.close(promise: nil)
        case "/compressed":
            let fields: HTTPHeaders = ["Content-Encoding": "gzip", "Content-Length": "\(TestHTTPServer.compressed.count)"]
            context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok, headers: fields))), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: TestHTTPServer.compressed)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case "/long-head":
            let fields: HTTPHeaders = ["X-Long": String(repeating: "a", count: 1 << 20), "Content-Length": "0"]
            context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok, headers: fields))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case "/endless":
            context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok))), promise: nil)
            goOn(context)
        case "/half":
            let half = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["Content-Length": "100"])
            context.write(wrapOutboundOut(.head(half)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "half"))))).assumeIsolated().whenComplete { _ in
                context.close(promise: nil)
            }
        case "/together":
            let turn = context.eventLoop.makePromise(of: Void.self)
            turn.futureResult.assumeIsolated().whenComplete { _ in self.echo(head, context) }
            server.hold(turn)
        case "/loop": redirect(307, to: "/loop", context)
        case let uri where uri.hasPrefix("/redirect/"):
            redirect(Int(uri.dropFirst("/redirect/".count)) ?? 500, to: head.headers.first(name: "X-Location"), context)
        default: echo(head, context)
        }
    }

    private func echo(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var text = ByteBuffer(string: "\(head.method.rawValue) \(head.headers.first(name: "X-Test") ?? "") ")
        text.writeBuffer(&body)
        let whole = HTTPResponseHead(version: .http1_1, status: .created, headers: ["Content-Length": "\(text.readableBytes)"])
        context.write(wrapOutboundOut(.head(whole)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(text))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    private func redirect(_ status: Int, to location: String?, _ context: ChannelHandlerContext) {
        var headers: HTTPHeaders = ["Content-Length": "0"]
        if let location { headers.add(name: "Location", value: location) }
        let head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
