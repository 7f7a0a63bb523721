package import SluiceCore
package import SluiceKafka
package import SluiceNet

/// Everything a gateway is told at its start.
package struct GatewayConfiguration: Sendable {
    package typealias Proxies = TrustedProxies
    package typealias Admission = AdmissionLimits

    package struct Network: Hashable, Sendable {
        package var host: String
        /// 0 is any free one.
        package var port: Int
        package var adminHost: String
        package var adminPort: Int
        /// The reverse proxies in front of the client port.
        package var trustedProxies: TrustedProxies
        /// Bounds of connections and requests on the client port.
        package var admission: AdmissionLimits

        package init(
            host: String = "127.0.0.1", port: Int, adminHost: String = "127.0.0.1", adminPort: Int, trustedProxies: TrustedProxies = .none,
            admission: AdmissionLimits = AdmissionLimits()
        ) {
            self.host = host
            self.port = port
            self.adminHost = adminHost
            self.adminPort = adminPort
            self.trustedProxies = trustedProxies
            self.admission = admission
        }
    }

    /// Parses `--trusted-proxy`.
    /// - Throws: `configInvalid` with the range at fault.
    package static func trustedProxies(_ ranges: [String]) throws(SluiceError) -> Proxies {
        Proxies(try ranges.map { (range) throws(SluiceError) in try NetworkRange(range) })
    }

    /// Bounds of the client port with another one for each address.
    /// - Parameter connectionsPerAddress: a quarter of them may be without a valid token.
    /// - Throws: `configInvalid` for fewer than 4.
    package static func admission(connectionsPerAddress: Int) throws(SluiceError) -> Admission {
        guard connectionsPerAddress >= 4 else {
            throw SluiceError(
                .configInvalid, "--connections-per-address \(connectionsPerAddress) is less than 4.", fix: "Give at least 4.")
        }
        return Admission(connectionsPerAddress: connectionsPerAddress, unauthenticatedPerAddress: connectionsPerAddress / 4)
    }

    package struct Plugins: Hashable, Sendable {
        /// Shared libraries, in the order of the chain.
        package var files: [String]
        /// Whether they run in the gateway's own process.
        package var inProcess: Bool
        /// Who may sign plugins; none: signatures are not asked for.
        package var keys: [PluginKey]

        package init(files: [String] = [], inProcess: Bool = false, keys: [PluginKey] = []) {
            self.files = files
            self.inProcess = inProcess
            self.keys = keys
        }
    }

    package var app: AppConfiguration
    /// The app directory, whose rules are taken up as they are edited; nil: they stay as they are in `app`.
    package var directory: String?
    /// A libpq connection string.
    package var postgres: String
    /// Kafka's bootstrap servers; nil is the embedded log.
    package var kafka: String?
    /// librdkafka's own settings for every client of it.
    package var kafkaSettings: KafkaSettings
    package var network: Network
    package var admin = Admin()
    package var plugins: Plugins
    /// Learn the schema from clients, allow what no rule forbids. Never in production (DEV-5).
    package var isDevelopment: Bool

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
