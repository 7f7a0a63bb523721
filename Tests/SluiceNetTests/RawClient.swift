import NIOCore
import NIOPosix

/// A client that writes bytes exactly as told, so that it can break every rule. One task uses it.
final class RawClient {
    struct Frame: Equatable {
        var opcode: UInt8
        var payload: [UInt8]

        static func binary(_ payload: [UInt8]) -> Frame { Frame(opcode: 2, payload: payload) }
        static func pong(_ payload: [UInt8]) -> Frame { Frame(opcode: 10, payload: payload) }
        /// The code of a close frame.
        var closeCode: Int? { opcode == 8 && payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
    }

    struct Ended: Error {}

    let channel: any Channel
    private var iterator: AsyncThrowingStream<ByteBuffer, any Error>.AsyncIterator
    private var buffer = ByteBuffer()

    private init(channel: any Channel, stream: AsyncThrowingStream<ByteBuffer, any Error>) {
        self.channel = channel
        iterator = stream.makeAsyncIterator()
    }

    /// - Parameter reads: false leaves everything that the server sends in the kernel until `startReading`.
    static func connect(
        port: Int, from address: String = "127.0.0.1", reads: Bool = true, answersPings: Bool = false,
        tls: (@Sendable (any Channel) throws -> any ChannelHandler)? = nil
    ) async throws -> RawClient {
        let (stream, continuation) = AsyncThrowingStream<ByteBuffer, any Error>.makeStream(bufferingPolicy: .bufferingOldest(1 << 20))
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: SocketAddress(ipAddress: address, port: 0))
            .channelOption(.autoRead, value: reads)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(tls(channel)) }
                    try channel.pipeline.syncOperations.addHandler(Collector(continuation, answersPings: answersPings))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawClient(channel: channel, stream: stream)
    }

    /// Connects and upgrades.
    static func webSocket(
        port: Int, from address: String = "127.0.0.1", path: String = "/sync", reads: Bool = true
    ) async throws -> RawClient {
        let client = try await connect(port: port, from: address)
        let head = try await client.upgrade(path: path)
        guard head.hasPrefix("HTTP/1.1 101 ") else { throw Ended() }
        if !reads { try await client.channel.setOption(.autoRead, value: false).get() }
        return client
    }

    func startReading() async throws { try await channel.setOption(.autoRead, value: true).get() }

    /// Sends an upgrade request; the answer's head.
    func upgrade(path: String = "/sync", subprotocols: String? = "sluice.v1", extra: String = "", body: String = "") async throws -> String
    {
        try await sendUpgrade(path: path, subprotocols: subprotocols, extra: extra, body: body)
        return try await readHead()
    }

    /// Sends an upgrade request.
    func sendUpgrade(path: String, subprotocols: String?, extra: String = "", body: String = "") async throws {
        let line = subprotocols.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""
        try await send(
            text: "GET \(path) HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\(line)\(extra)\r\n\(body)")
    }

    func send(text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// One request on this connection; status line and body.
    func request(_ method: String, _ path: String, body: String = "") async throws -> (head: String, body: String) {
        try await send(text: "\(method) \(path) HTTP/1.1\r\nHost: test\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        return try await readResponse()
    }

    func readResponse() async throws -> (head: String, body: String) {
        let head = try await readHead()
        let length = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
            .flatMap { Int($0.split(separator: ":")[1].drop { $0 == " " }) }
        return (head, String(decoding: try await read(length ?? 0), as: UTF8.self))
    }

    func readHead() async throws -> String {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try await read(1) }
        return String(decoding: head, as: UTF8.self)
    }

    func read(_ count: Int) async throws -> [UInt8] {
        while buffer.readableBytes < count {
            guard var more = try await iterator.next(isolation: #isolation) else { throw Ended() }
            buffer.writeBuffer(&more)
        }
        return buffer.readBytes(length: count) ?? []
    }

    func readFrame() async throws -> Frame {
        let first = try await read(2)
        let length =
            switch first[1] {
            case 126: try await read(2).reduce(0) { $0 << 8 | Int($1) }
            case 127: try await read(8).reduce(0) { $0 << 8 | Int($1) }
            default: Int(first[1])
            }
        return Frame(opcode: first[0] & 15, payload: try await read(length))
    }

    /// Frames until a close frame, which is the last one.
    func readToClose() async throws -> [Frame] {
        var frames: [Frame] = []
        repeat { frames.append(try await readFrame()) } while frames.last?.opcode != 8
        return frames
    }

    /// Waits until the server ends the connection; how many bytes came before that.
    func readToEnd() async throws -> Int {
        var count = buffer.readableBytes
        buffer.clear()
        while let more = try await iterator.next(isolation: #isolation) { count += more.readableBytes }
        return count
    }

    /// Ends the connection, which the server may have done already.
    func close() async { _ = try? await channel.close() }
}

/// A client's frame.
func clientFrame(
    _ payload: [UInt8], opcode: UInt8 = 2, fin: Bool = true, reserved: UInt8 = 0, masked: Bool = true, claimedLength: Int? = nil
) -> [UInt8] {
    let mask: [UInt8] = [7, 77, 177, 211]
    let length = claimedLength ?? payload.count
    var bytes: [UInt8] = [(fin ? 0x80 : 0) | reserved << 4 | opcode]
    let flag: UInt8 = masked ? 0x80 : 0
    switch length {
    case ...125: bytes.append(flag | UInt8(length))
    case ...0xFFFF: bytes += [flag | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
    default: bytes += [flag | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
    }
    guard masked else { return bytes + payload }
    return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
}

private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private let continuation: AsyncThrowingStream<ByteBuffer, any Error>.Continuation

    private let answersPings: Bool

    init(_ continuation: AsyncThrowingStream<ByteBuffer, any Error>.Continuation, answersPings: Bool) {
        self.continuation = continuation
        self.answersPings = answersPings
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        continuation.yield(bytes)
        guard answersPings, bytes.readableBytesView.first == 0x89 else { return }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: clientFrame([], opcode: 10))), promise: nil)
    }
    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        continuation.finish(throwing: error)
        context.close(promise: nil)
    }
}
