import NIOCore
import NIOHTTP1
import NIOPosix
package import SluiceValues
import Synchronization

/// The HTTP face of a test issuer on 127.0.0.1. It answers with JSON by path.
package final class IssuerServer: Sendable {
    package typealias Answers = @Sendable (_ path: String, _ body: String) -> (status: Int, json: JSON)

    private let channel: any Channel
    private let answers: AnswerTable

    package init(_ answers: @escaping Answers) async throws {
        let table = AnswerTable(answers)
        self.answers = table
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(IssuerHandler(table))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    /// A server that has the issuer's keys at every path.
    package convenience init(keysOf issuer: TestIssuer) async throws {
        let keys = try issuer.keySet()
        try await self.init { _, _ in (200, keys) }
    }

    package var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// The number of requests so far.
    package var requests: Int { answers.count }

    package func replace(_ answers: @escaping Answers) { self.answers.replace(answers) }

    package func close() async { try? await channel.close() }
}

private final class AnswerTable: Sendable {
    private let state: Mutex<(answers: IssuerServer.Answers, count: Int)>

    init(_ answers: @escaping IssuerServer.Answers) { state = Mutex((answers, 0)) }

    var count: Int { state.withLock(\.count) }

    func replace(_ answers: @escaping IssuerServer.Answers) { state.withLock { $0.answers = answers } }

    func answer(_ path: String, _ body: String) -> (status: Int, json: JSON) {
        let answers = state.withLock { state in
            state.count += 1
            return state.answers
        }
        return answers(path, body)
    }
}

private final class IssuerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answers: AnswerTable
    private var path = ""
    private var body = ""

    init(_ answers: AnswerTable) { self.answers = answers }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): (path, body) = (head.uri, "")
        case .body(let bytes): body += String(buffer: bytes)
        case .end:
            let answer = answers.answer(path, body)
            let bytes = ByteBuffer(bytes: answer.json.utf8)
            let head = HTTPResponseHead(
                version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status),
                headers: ["content-type": "application/json", "content-length": String(bytes.readableBytes)])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
