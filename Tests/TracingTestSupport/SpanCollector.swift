import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A collector of traces on 127.0.0.1 that answers as the test says.
package final class SpanCollector: Sendable {
    package enum Answer: Sendable {
        case status(Int)
        /// No answer at all.
        case silence
    }

    package struct Request: Sendable {
        package var path: String
        package var type: String?
        package var body: String
    }

    private let channel: any Channel
    private let requests: AsyncStream<Request>

    /// - Parameter answers: The answers to the first requests; later ones get 200.
    package init(_ answers: [Answer] = []) async throws {
        let (requests, heard) = AsyncStream.makeStream(of: Request.self, bufferingPolicy: .bufferingOldest(256))
        let left = AnswerList(answers)
        self.requests = requests
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(SpanCollectorHandler(left, heard))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    package var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Waits for the next request.
    package func next() async -> Request? {
        var requests = requests.makeAsyncIterator()
        return await requests.next()
    }

    package func close() async { try? await channel.close() }
}

private final class AnswerList: Sendable {
    private let answers: Mutex<[SpanCollector.Answer]>

    init(_ answers: [SpanCollector.Answer]) { self.answers = Mutex(answers) }

    func next() -> SpanCollector.Answer { answers.withLock { $0.isEmpty ? .status(200) : $0.removeFirst() } }
}

private final class SpanCollectorHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answers: AnswerList
    private let heard: AsyncStream<SpanCollector.Request>.Continuation
    private var request = SpanCollector.Request(path: "", body: "")

    init(_ answers: AnswerList, _ heard: AsyncStream<SpanCollector.Request>.Continuation) {
        self.answers = answers
        self.heard = heard
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): request = .init(path: head.uri, type: head.headers.first(name: "content-type"), body: "")
        case .body(let bytes): request.body += String(buffer: bytes)
        case .end:
            heard.yield(request)
            guard case .status(let code) = answers.next() else { return }
            let head = HTTPResponseHead(
                version: .http1_1, status: HTTPResponseStatus(statusCode: code), headers: ["content-length": "2"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "{}")))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
