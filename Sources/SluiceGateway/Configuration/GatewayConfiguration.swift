package import SluiceCore
package import SluiceKafka
package import SluiceNet
package import SluiceTracing

/// The settings that a gateway starts with.
package struct GatewayConfiguration: Sendable {
    package typealias Proxies = TrustedProxies
    package typealias Admission = AdmissionLimits
    package typealias Origin = ServerOrigin
    package typealias Collector = TraceCollector

    package struct Network: Hashable, Sendable {
        package var host: String
        /// The client port; 0 selects a free one.
        package var port: Int
        package var adminHost: String
        package var adminPort: Int
        /// The TLS files of the client port; nil for plain HTTP.
        package var tls: TLSFiles?
        /// The reverse proxies in front of the client port.
        package var trustedProxies: TrustedProxies
        /// The limits of connections and requests on the client port.
        package var admission: AdmissionLimits
        /// The address that clients use, as the gateway announces it. If it is nil, the headers of a request name it.
        package var publicOrigin: ServerOrigin?
        /// The addresses of this machine, beside `host`, whose pages development mode admits.
        package var siteNames: Set<String> = []

        package init(
            host: String = "127.0.0.1", port: Int, adminHost: String = "127.0.0.1", adminPort: Int, tls: TLSFiles? = nil,
            trustedProxies: TrustedProxies = .none, admission: AdmissionLimits = AdmissionLimits(), publicOrigin: ServerOrigin? = nil
        ) {
            self.host = host
            self.port = port
            self.adminHost = adminHost
            self.adminPort = adminPort
            self.tls = tls
            self.trustedProxies = trustedProxies
            self.admission = admission
            self.publicOrigin = publicOrigin
        }
    }

    /// Parses the values of `--trusted-proxy`.
    ///
    /// - Throws: `configInvalid` with the range at fault.
    package static func trustedProxies(_ ranges: [String]) throws(SluiceError) -> Proxies {
        Proxies(try ranges.map { (range) throws(SluiceError) in try NetworkRange(range) })
    }

    /// Returns the TLS files of the client port; nil without any.
    ///
    /// - Throws: `configInvalid` for a certificate without a key, and for a key or client authorities without a certificate.
    package static func tls(certificate: String?, key: String?, clientAuthorities: String?) throws(SluiceError) -> TLSFiles? {
        switch (certificate, key) {
        case (let certificate?, let key?):
            return TLSFiles(certificateChain: certificate, privateKey: key, clientAuthorities: clientAuthorities)
        case (nil, nil) where clientAuthorities == nil: return nil
        default:
            throw SluiceError(
                .configInvalid, "TLS needs a certificate and its key.", fix: "Give both --tls-certificate and --tls-key, or none of them.")
        }
    }

    /// Parses the value of `--public-url`.
    ///
    /// - Throws: `configInvalid` unless it is an http or https URL without a path.
    package static func publicOrigin(_ url: String) throws(SluiceError) -> Origin { try Origin(url: url) }

    /// Returns the limits of the client port with another limit per address.
    ///
    /// - Parameter connectionsPerAddress: The connections per address, at least 4. A quarter of them may be without a valid token.
    /// - Throws: `configInvalid` for fewer than 4.
    package static func admission(connectionsPerAddress: Int) throws(SluiceError) -> Admission {
        guard connectionsPerAddress >= 4 else {
            throw SluiceError(
                .configInvalid, "--connections-per-address \(connectionsPerAddress) is less than 4.", fix: "Give at least 4.")
        }
        return Admission(connectionsPerAddress: connectionsPerAddress, unauthenticatedPerAddress: connectionsPerAddress / 4)
    }

    /// Parses the value of `--trace-collector`.
    ///
    /// - Throws: `configInvalid` unless it is an http or https URL.
    package static func collector(_ url: String) throws(SluiceError) -> Collector { try Collector(url) }

    package struct Plugins: Hashable, Sendable {
        /// The paths of shared libraries, in the order of the chain.
        package var files: [String]
        /// `true` if plugins run in the gateway's own process.
        package var inProcess: Bool
        /// The public keys that may sign plugins. If it is empty, plugins need no signature.
        package var keys: [PluginKey]

        package init(files: [String] = [], inProcess: Bool = false, keys: [PluginKey] = []) {
            self.files = files
            self.inProcess = inProcess
            self.keys = keys
        }
    }

    package var app: AppConfiguration
    /// The app directory. The gateway reloads its rules when they change; with nil the rules of `app` stay in use.
    package var directory: String?
    /// PostgreSQL, as a libpq connection string.
    package var postgres: String
    /// Kafka's bootstrap servers; nil selects the embedded log.
    package var kafka: String?
    /// Settings of librdkafka for each Kafka client.
    package var kafkaSettings: KafkaSettings
    package var network: Network
    package var admin = Admin()
    /// The collector that receives spans; nil for none.
    package var traceCollector: TraceCollector?
    /// The cost of the hashes of new passwords. A stored hash has its own.
    package var passwordCost = PasswordHasher.Cost.standard
    package var plugins: Plugins
    /// The time that the gateway has to end.
    package var grace = GracePeriod.immediate
    /// `true` to learn the schema from clients and to allow everything that no rule denies. Not for production.
    package var isDevelopment: Bool
    /// Called in development mode with each schema that clients have extended, before it takes effect. It must not block.
    package var learned: (@Sendable (AppSchemaRecord) -> Void)?
    /// Called with the outcome of each edit of the app directory; nil to log it. It must not block.
    package var reloaded: (@Sendable (RuleReload) -> Void)?

    package init(
        app: AppConfiguration, directory: String? = nil, postgres: String, kafka: String?,
        kafkaSettings: KafkaSettings = [:], network: Network, plugins: Plugins = Plugins(), isDevelopment: Bool = false
    ) {
        self.app = app
        self.directory = directory
        self.postgres = postgres
        self.kafka = kafka
        self.kafkaSettings = kafkaSettings
        self.network = network
        self.plugins = plugins
        self.isDevelopment = isDevelopment
    }
}
