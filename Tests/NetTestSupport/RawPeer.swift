package import NIOCore
import NIOPosix
import NIOSSL

/// An HTTP service on 127.0.0.1 that answers each request with bytes of the test's choice.
package final class RawPeer: Sendable {
    package let port: Int
    private let channel: any Channel
    private let stream: AsyncStream<String>

    /// - Parameters:
    ///   - certificate: The certificate and key of TLS; nil for none.
    ///   - answer: Receives the text of a request and its connection.
    package init(
        certificate: (chain: String, key: String)? = nil, _ answer: @escaping @Sendable (_ request: String, any Channel) -> Void
    ) async throws {
        let context = try certificate.map { chain, key in
            try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(chain.utf8)).map { .certificate($0) },
                    privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))))
        }
        let requests = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(64))
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context)) }
                    try channel.pipeline.syncOperations.addHandler(
                        RawPeerHandler { request in
                            requests.continuation.yield(request)
                            answer(request, channel)
                        })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
        stream = requests.stream
    }

    /// Waits for the next request.
    package func next() async -> String? {
        var requests = stream.makeAsyncIterator()
        return await requests.next()
    }

    package func close() async { try? await channel.close() }

    package static func text(_ status: String, _ body: String = "", headers: String = "") -> ByteBuffer {
        ByteBuffer(string: "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)")
    }
}

private final class RawPeerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let answer: (String) -> Void
    private var text = ""

    init(_ answer: @escaping (String) -> Void) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        text += String(buffer: unwrapInboundIn(data))
        guard let end = text.firstRange(of: "\r\n\r\n") else { return }
        let length = text[..<end.lowerBound].split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
        let expected = length.flatMap { Int($0.split(separator: " ")[1]) } ?? 0
        guard text[end.upperBound...].utf8.count >= expected else { return }
        answer(text)
        text = ""
    }
}
