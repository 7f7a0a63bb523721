import NIOCore
import NIOPosix
package import NIOSSL
import NIOTLS
package import SluiceCore

/// A look at the certificate of an `https` address.
package enum TLSProbe {
    /// Connects, completes a TLS handshake as a client with the machine's trusted roots would, and closes.
    ///
    /// - Parameters:
    ///   - tls: The settings of the client, such as its trusted roots.
    ///   - patience: The limit of the connection and of the handshake, in seconds.
    /// - Returns: The end of the certificate's validity, in seconds since 1970.
    /// - Throws: `connectionFailed` with the reason: the address, an untrusted or expired certificate, another name.
    package static func certificateEnd(
        of origin: ServerOrigin, tls: TLSConfiguration = .makeClientConfiguration(), patience: Int64 = 5
    ) async throws(SluiceError) -> Int64 {
        let (host, port) = parts(of: origin)
        do {
            let context = try NIOSSLContext(configuration: tls)
            let group = MultiThreadedEventLoopGroup.singleton
            let end = group.next().makePromise(of: Int64.self)
            let alarm = group.next().scheduleTask(in: .seconds(patience)) { end.fail(ChannelError.connectTimeout(.seconds(patience))) }
            defer { alarm.cancel() }
            let connection = ClientBootstrap(group: group).connectTimeout(.seconds(patience)).channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // An address has no server name (RFC 6066).
                    let name = NetworkAddress(host) == nil ? host : nil
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLClientHandler(context: context, serverHostname: name), CertificateReader(end))
                }
            }.connect(host: host, port: port)
            connection.whenFailure { end.fail($0) }
            return try await end.futureResult.get()
        } catch {
            throw SluiceError(
                .connectionFailed, "A TLS connection to \(host):\(port) fails.",
                fix: "Check the proxy, its certificate and the name in it.", cause: ErrorCause(error))
        }
    }

    private static func parts(of origin: ServerOrigin) -> (host: String, port: Int) {
        let text = origin.authority.description
        // The last colon outside of brackets separates the port.
        guard let colon = text.lastIndex(of: ":"), !text[colon...].contains("]"), let port = Int(text[text.index(after: colon)...]) else {
            return (bare(text), 443)
        }
        return (bare(String(text[..<colon])), port)
    }

    private static func bare(_ host: String) -> String { host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host }
}

/// Reads the peer's certificate after the handshake.
private final class CertificateReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let end: EventLoopPromise<Int64>

    init(_ end: EventLoopPromise<Int64>) { self.end = end }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted? = event as? TLSUserEvent else { return context.fireUserInboundEventTriggered(event) }
        defer { context.close(promise: nil) }
        guard let handler = try? context.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self),
            let certificate = handler.peerCertificate
        else { return end.fail(ChannelError.eof) }
        end.succeed(Int64(certificate.notValidAfter))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { end.fail(ChannelError.eof) }
}
