package import NIOSSL

extension TLSConfiguration {
    /// The settings of connections to a gateway: TLS 1.2 or 1.3, and the system's roots.
    package static func gatewayClient() -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }
}
