import Foundation
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import TestSupport

/// Ends TLS in front of a port of this machine, and passes bytes on.
package final class TLSProxy: Sendable {
    package let port: Int
    /// The file with the certificate, which signed itself.
    package let certificate: String
    /// The file with its key.
    package let key: String
    package var url: String { "https://localhost:\(port)" }

    private let folder: Phone.Folder
    private let current: Current

    private init(_ port: Int, _ folder: Phone.Folder, _ current: Current) {
        self.port = port
        self.folder = folder
        self.current = current
        certificate = folder.url.appendingPathComponent("chain.pem").path
        key = folder.url.appendingPathComponent("key.pem").path
    }

    /// - Parameters:
    ///   - asksClients: whether those who connect have to show the same certificate.
    ///   - requests: makes the handler of each client's bytes; none: they are passed on as they are.
    ///   - answers: makes the handler of the target's bytes, with the proxy's port as argument; none: they are passed on as they are.
    package static func with(
        _ target: Int, asksClients: Bool = false, requests: (@Sendable () -> any ChannelHandler)? = nil,
        answers: (@Sendable (Int) -> any ChannelHandler)? = nil,
        _ body: (TLSProxy) async throws -> Void
    ) async throws {
        let folder = try Phone.Folder()
        try folder.put(TestCertificate.certificate, at: "chain.pem")
        try folder.put(TestCertificate.key, at: "key.pem")
        let current = Current(try context(TestCertificate.certificate, TestCertificate.key, asksClients: asksClients))
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { near in
                let own = near.localAddress?.port ?? 0
                let context = current.add(near)
                return ClientBootstrap(group: near.eventLoop).connect(host: "127.0.0.1", port: target).flatMapThrowing { far in
                    try near.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    if let requests { try near.pipeline.syncOperations.addHandler(requests()) }
                    try near.pipeline.syncOperations.addHandler(Relay(to: far))
                    if let answers { try far.pipeline.syncOperations.addHandler(answers(own)) }
                    try far.pipeline.syncOperations.addHandler(Relay(to: near))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            try await body(TLSProxy(server.localAddress?.port ?? 0, folder, current))
        } catch {
            try await server.close()
            throw error
        }
        try await server.close()
    }

    /// Ends every connection, and shows who comes from here on another certificate, or the first one again.
    package func show(stranger: Bool) throws {
        let context =
            try stranger
            ? Self.context(TestCertificate.stranger, TestCertificate.strangerKey)
            : Self.context(TestCertificate.certificate, TestCertificate.key)
        for channel in current.turn(to: context) { channel.close(promise: nil) }
    }

    private static func context(_ certificate: String, _ key: String, asksClients: Bool = false) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8))
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem)))
        if asksClients {
            configuration.certificateVerification = .noHostnameVerification
            configuration.trustRoots = .certificates(chain)
        }
        return try NIOSSLContext(configuration: configuration)
    }

    /// What the next connection is shown, and those there have been.
    private final class Current: Sendable {
        private let state: Mutex<(context: NIOSSLContext, channels: [any Channel])>

        init(_ context: NIOSSLContext) { state = Mutex((context, [])) }

        func add(_ channel: any Channel) -> NIOSSLContext {
            state.withLock { state in
                state.channels.append(channel)
                return state.context
            }
        }

        func turn(to context: NIOSSLContext) -> [any Channel] {
            state.withLock { state in
                defer { state = (context, []) }
                return state.channels
            }
        }
    }

    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let other: any Channel

        init(to other: any Channel) { self.other = other }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { other.write(unwrapInboundIn(data), promise: nil) }
        func channelReadComplete(context: ChannelHandlerContext) { other.flush() }
        func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
