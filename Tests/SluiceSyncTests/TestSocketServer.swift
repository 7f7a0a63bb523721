import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization

/// A small WebSocket server on a free port; what it does is said by the path that the client asks for.
final class TestSocketServer: Sendable {
    struct Seen {
        var heads: [HTTPRequestHead] = []
        var pongs = 0
        var closeCodes: [WebSocketErrorCode] = []
        var flooded = 0
        /// The payload of the last pong.
        var lastPong: [UInt8] = []
    }

    let seen = Mutex(Seen())
    private let channel = Mutex<(any Channel)?>(nil)

    var port: Int { channel.withLock { $0?.localAddress?.port } ?? 0 }

    /// - Parameter tls: when it speaks nothing else.
    func start(tls: TLSConfiguration? = nil) async throws {
        let secure = try tls.map { try NIOSSLContext(configuration: $0) }
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture {
                    if let secure { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: secure)) }
                    let upgrader = NIOWebSocketServerUpgrader(
                        maxFrameSize: 1 << 22,
                        shouldUpgrade: { channel, head in
                            self.seen.withLock { $0.heads.append(head) }
                            let headers: HTTPHeaders = ["Sec-WebSocket-Protocol": "sluice.v1"]
                            return channel.eventLoop.makeSucceededFuture(head.uri.hasSuffix("/refuse") ? nil : headers)
                        },
                        upgradePipelineHandler: { channel, head in
                            channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(TestSocketHandler(server: self, path: head.uri))
                            }
                        })
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withServerUpgrade: (
                            upgraders: [upgrader],
                            completionHandler: { $0.pipeline.syncOperations.removeHandler(name: "not-found", promise: nil) }
                        ))
                    try channel.pipeline.syncOperations.addHandler(NotFoundHandler(), name: "not-found")
                }
            }
            .bind(host: tls == nil ? "127.0.0.1" : "0.0.0.0", port: 0).get()
        channel.withLock { $0 = server }
    }

    func url(_ path: String) -> String { "ws://127.0.0.1:\(port)/\(path)" }

    func stop() async throws { try await channel.withLock(\.self)?.close().get() }
}

/// Answers what is not upgraded.
private final class NotFoundHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .end = unwrapInboundIn(data) else { return }
        let head = HTTPResponseHead(version: .http1_1, status: .notFound, headers: ["Content-Length": "0"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

private final class TestSocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let server: TestSocketServer
    private let path: String

    init(server: TestSocketServer, path: String) {
        self.server = server
        self.path = path
    }

    func handlerAdded(context: ChannelHandlerContext) {
        switch path {
        case "/text": write(.text, [65], context: context)
        case "/orphan": write(.continuation, [65], context: context)
        case "/ping": write(.ping, [1, 2], context: context)
        case "/close": close(.normalClosure, context: context)
        case "/too-large": close(.messageTooLarge, context: context)
        case "/vanish": context.close(promise: nil)
        case "/pings": pings(context: context)
        case "/flood": flood(0, channel: context.channel)
        default: break
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        var content = frame.unmaskedData
        switch frame.opcode {
        case .binary: echo(Array(buffer: content), context: context)
        case .ping: write(.pong, Array(buffer: content), context: context)
        case .pong:
            server.seen.withLock { seen in
                seen.pongs += 1
                seen.lastPong = Array(buffer: content)
            }
        case .connectionClose:
            if let code = content.readWebSocketErrorCode() { server.seen.withLock { $0.closeCodes.append(code) } }
        default: break
        }
    }

    /// In three fragments with a ping between them.
    private func echo(_ bytes: [UInt8], context: ChannelHandlerContext) {
        let third = bytes.count / 3
        write(.binary, Array(bytes[..<third]), isLast: false, context: context)
        write(.continuation, Array(bytes[third..<2 * third]), isLast: false, context: context)
        write(.ping, [], context: context)
        write(.continuation, Array(bytes[(2 * third)...]), context: context)
    }

    static let pings = 400_000

    /// Sends pings and reads nothing until all are with the kernel. The last one is all ones.
    private func pings(context: ChannelHandlerContext) {
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess { [server] in
            let ping = channel.allocator.buffer(bytes: [UInt8](repeating: 0, count: 125))
            for _ in 1..<Self.pings { channel.write(WebSocketFrame(fin: true, opcode: .ping, data: ping), promise: nil) }
            let last = channel.allocator.buffer(bytes: [UInt8](repeating: 1, count: 125))
            channel.writeAndFlush(WebSocketFrame(fin: true, opcode: .ping, data: last)).whenSuccess {
                server.seen.withLock { $0.flooded = 1 }
                channel.setOption(.autoRead, value: true).whenComplete { _ in }
            }
        }
    }

    static let floodMessages = 512
    static let floodBytes = 256 << 10

    /// The next message is written when the one before has gone to the socket.
    private func flood(_ index: Int, channel: any Channel) {
        guard index < Self.floodMessages else { return }
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: Self.floodBytes)
        let frame = WebSocketFrame(fin: true, opcode: .binary, data: channel.allocator.buffer(bytes: bytes))
        let server = server
        let next = NIOLoopBound(self, eventLoop: channel.eventLoop)
        channel.writeAndFlush(frame).whenSuccess {
            server.seen.withLock { $0.flooded += 1 }
            next.value.flood(index + 1, channel: channel)
        }
    }

    private func close(_ code: WebSocketErrorCode, context: ChannelHandlerContext) {
        var content = context.channel.allocator.buffer(capacity: 8)
        content.write(webSocketErrorCode: code)
        content.writeString("because")
        write(.connectionClose, Array(buffer: content), context: context)
    }

    private func write(_ opcode: WebSocketOpcode, _ bytes: [UInt8], isLast: Bool = true, context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: isLast, opcode: opcode, data: context.channel.allocator.buffer(bytes: bytes))
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}

extension TestSocketServer {
    static var pings: Int { TestSocketHandler.pings }
    static var floodMessages: Int { TestSocketHandler.floodMessages }
}
