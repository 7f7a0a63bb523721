import ArgumentParser
import Foundation
import SluiceCore
import SluiceGateway
import SluiceTools

/// The options for an app and its database.
struct AppOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The app directory: schemas, rules, sync configuration.", valueName: "directory"))
    var app: String

    @OptionGroup var id: AppIDOption

    @Option(
        help: ArgumentHelp("PostgreSQL, as a libpq connection string. Default: the environment's SLUICE_POSTGRES.", valueName: "conninfo"))
    var postgres: String?

    /// - Throws: All problems of the directory, also those of its roles; `configMissing` if it has no class.
    func configuration() async throws(SluiceError) -> AppConfiguration { try await ExportCheck.configuration(at: app, appID: id.appID) }

    /// The connection string; nil if no option and no variable names it.
    func named() throws(SluiceError) -> String? { try PostgresOption.conninfo(postgres) }

    func conninfo() throws(SluiceError) -> String {
        guard let conninfo = try named() else {
            throw SluiceError(.configMissing, "No PostgreSQL is named.", fix: "Pass --postgres or set SLUICE_POSTGRES.")
        }
        return conninfo
    }
}

struct AppIDOption: ParsableArguments {
    @Option(
        name: .customLong("app-id"),
        help: ArgumentHelp(
            "The app id that clients are built with. Default: that of the app directory.", valueName: "id"))
    var appID: String?
}

struct NetworkOptions: ParsableArguments {
    @Option(help: "The address that clients connect to.")
    var host = "127.0.0.1"

    @Option(help: "The port that clients connect to; 0 is any free one.")
    var port: UInt16 = 8090

    @Option(help: "The address of metrics and the admin API.")
    var adminHost = "127.0.0.1"

    @Option(help: "The port of metrics and the admin API; 0 is any free one.")
    var adminPort: UInt16 = 8091

    @Option(
        help: ArgumentHelp(
            "The certificate chain of the client port, in PEM. The gateway takes over a changed file. Default: no TLS.", valueName: "file"))
    var tlsCertificate: String?

    @Option(help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"))
    var tlsKey: String?

    @Option(
        name: .customLong("tls-client-ca"),
        help: ArgumentHelp(
            "The certificates of authorities, in PEM. Only clients with a certificate of one can connect. Default: no client certificates.",
            valueName: "file"))
    var clientAuthorities: String?

    @Option(
        help: "Open connections of one address, or IPv6 network of 64 bits; at most a quarter of them without a valid token.")
    var connectionsPerAddress = Limits.connectionsPerAddress

    @OptionGroup var proxies: ProxyOptions

    @Option(
        help: ArgumentHelp(
            "The address that clients use, as the gateway announces it. Default: the host of the request.", valueName: "url"))
    var publicUrl: String?

    /// - Throws: `configInvalid` for an invalid proxy range or public URL, or a certificate without its key.
    func configuration() throws(SluiceError) -> GatewayConfiguration.Network {
        .init(
            host: host, port: Int(port), adminHost: adminHost, adminPort: Int(adminPort),
            tls: try GatewayConfiguration.tls(certificate: tlsCertificate, key: tlsKey, clientAuthorities: clientAuthorities),
            trustedProxies: try proxies.trusted(),
            admission: try GatewayConfiguration.admission(connectionsPerAddress: connectionsPerAddress),
            publicOrigin: try publicUrl.map { url throws(SluiceError) in try GatewayConfiguration.publicOrigin(url) })
    }
}

/// The options of a gateway, for `sluice serve` and `sluice check`.
struct GatewayOptions: ParsableArguments {
    @OptionGroup var app: AppOptions

    @Option(
        help: ArgumentHelp("Kafka's bootstrap servers. Default: SLUICE_KAFKA. Without either, the embedded log.", valueName: "host:port"))
    var kafka: String?

    @Option(
        help: ArgumentHelp(
            "librdkafka's settings for Kafka's clients, name=value lines: TLS, SASL. Default: SLUICE_KAFKA_CONFIG.", valueName: "file"))
    var kafkaConfig: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var admin: AdminOptions
    @OptionGroup var plugins: PluginOptions

    @Option(
        help: ArgumentHelp(
            "A collector of traces, by OTLP over HTTP. Default: SLUICE_TRACE_COLLECTOR. Without either, there are no traces.",
            valueName: "url"))
    var traceCollector: String?

    @Option(
        help: ArgumentHelp(
            "Seconds from SIGTERM to the end of the process, 1 to 600, for clients to leave. Default: SLUICE_GRACE_SECONDS, else 25.",
            valueName: "seconds"))
    var graceSeconds: Int?

    /// - Throws: `configInvalid` for a value out of range, and for a variable that is no number.
    func grace(_ environment: ProcessEnvironment) throws(SluiceError) -> GracePeriod {
        if let graceSeconds { return try GracePeriod(seconds: graceSeconds) }
        // An environment variable may be set but empty.
        guard let text = environment["SLUICE_GRACE_SECONDS"], !text.isEmpty else { return try GracePeriod(seconds: Limits.graceSeconds) }
        guard let seconds = Int(text) else {
            throw SluiceError(.configInvalid, "SLUICE_GRACE_SECONDS is '\(text)', which is no number.", fix: "Give whole seconds.")
        }
        return try GracePeriod(seconds: seconds)
    }

    func collector(_ environment: ProcessEnvironment) throws(SluiceError) -> GatewayConfiguration.Collector? {
        // An environment variable may be set but empty.
        guard let text = traceCollector ?? environment["SLUICE_TRACE_COLLECTOR"], !text.isEmpty else { return nil }
        return try GatewayConfiguration.collector(text)
    }

    func configuration() async throws -> GatewayConfiguration {
        let environment = ProcessEnvironment()
        let (servers, settings) = try KafkaFile.read(
            servers: kafka ?? environment["SLUICE_KAFKA"], file: kafkaConfig ?? environment["SLUICE_KAFKA_CONFIG"])
        var configuration = GatewayConfiguration(
            app: try await app.configuration(), directory: app.app, postgres: try app.conninfo(), kafka: servers,
            kafkaSettings: settings, network: try network.configuration(), plugins: try plugins.specs(), isDevelopment: false)
        configuration.admin = try admin.configuration()
        configuration.traceCollector = try collector(environment)
        configuration.grace = try grace(environment)
        return configuration
    }
}

struct ProxyOptions: ParsableArguments {
    @Option(
        name: .customLong("trusted-proxy"),
        help: ArgumentHelp(
            "A reverse proxy in front of the client port, whose X-Forwarded-For or Forwarded header is trusted. May be repeated.",
            valueName: "CIDR"))
    var ranges: [String] = []

    func trusted() throws(SluiceError) -> GatewayConfiguration.Proxies { try GatewayConfiguration.trustedProxies(ranges) }
}

struct PluginOptions: ParsableArguments {
    @Option(
        name: .customLong("plugin"),
        help: ArgumentHelp("A rule plugin beside those of the app's plugins.json; may be repeated.", valueName: "file"))
    var files: [String] = []

    @Option(
        name: .customLong("plugin-key"),
        help: ArgumentHelp(
            "A public Ed25519 key, as a file or base64. Plugins then need the signature of one. May be repeated.", valueName: "key"))
    var keys: [String] = []

    @Flag(
        name: .customLong("plugins-in-process"),
        help: "Run the plugins in the gateway's own process: faster, but a crash of a plugin ends the gateway.")
    var inProcess = false

    func specs() throws -> GatewayConfiguration.Plugins {
        .init(files: files, inProcess: inProcess, keys: try keys.map(Self.key))
    }

    /// Parses a key from a file or from the text itself.
    static func key(_ text: String) throws -> PluginKey { try PluginKey((try? String(contentsOfFile: text, encoding: .utf8)) ?? text) }
}

/// Prints an error to standard error and returns the exit code to throw: 78 for the configuration, 1 for any other error.
func failure(_ error: SluiceError) -> any Error {
    StandardError.write("sluice: \(error)\n")
    return ExitCode(error.code.isConfiguration ? 78 : 1)
}

/// Runs a command's body and reports a `SluiceError` as a line on standard error and an exit code. The code is 78 for configuration
/// (`EX_CONFIG` of sysexits.h) and 1 for the rest.
///
/// - Parameter hasRoles: `true` for a command that configures the plugins of an app directory. A refusal of theirs is 78 as well.
func reporting(hasRoles: Bool = false, _ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let error as SluiceError {
        let refusal = failure(error)
        throw hasRoles && error.code == .pluginRefused ? ExitCode(78) : refusal
    }
}

extension ErrorCode {
    /// `true` for errors in the operator's input, which a retry cannot fix.
    var isConfiguration: Bool { (900..<950).contains(rawValue) }
}
