import NIOCore
package import NIOSSL
import SluiceCore

extension TLSConfiguration {
    /// The settings of connections to a gateway: TLS 1.2 or 1.3, and the system's roots.
    package static func gatewayClient() -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }
}

/// The TLS of a transport: its settings and the keys that the app expects.
struct ClientTLS: Sendable {
    let configuration: TLSConfiguration
    let pins: KeyPins

    /// Returns the context of a connection; nil for an address without TLS.
    /// - Throws: `configInvalid` or `serverKeyMismatch` for pins that the address cannot meet, and errors of NIOSSL.
    func context(for url: SocketURL, named text: String) throws -> NIOSSLContext? {
        try pins.check(text, isSecure: url.isSecure)
        return url.isSecure ? try NIOSSLContext(configuration: configuration) : nil
    }

    /// Returns the handler of a connection. Nothing is sent before the certificate and its key have been checked.
    /// - Parameter attempt: Receives the error of a key without a pin.
    func handler(_ context: NIOSSLContext, host: String, _ attempt: ConnectionAttempt) throws -> NIOSSLClientHandler {
        // An IP address is no server name. Its certificate is verified against the address itself.
        // Only an IPv6 address has colons, and `SocketAddress` refuses it with a zone.
        let isAddress = host.contains(":") || (try? SocketAddress(ipAddress: host, port: 0)) != nil
        let name = isAddress ? nil : host
        guard !pins.isEmpty else { return try NIOSSLClientHandler(context: context, serverHostname: name) }
        // The other callback of NIOSSL replaces the verification of the chain. This one follows it.
        return try NIOSSLClientHandler._makeSSLClientHandler(context: context, serverHostname: name) { [pins] certificate, channel in
            channel.eventLoop.makeCompletedFuture {
                do throws(SluiceError) { try pins.check(certificate, of: host) } catch {
                    attempt.refuse(error)
                    throw error
                }
            }
        }
    }
}
