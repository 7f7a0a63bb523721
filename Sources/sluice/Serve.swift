import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a gateway.",
        discussion: """
            Clients connect to --port; --admin-port has the operator console, metrics and the admin API and is bound to \
            127.0.0.1 unless told otherwise. At any other address it needs --admin-token-file, or a token in the environment.
            Start as many gateways as you like with the same app, PostgreSQL and Kafka: one of them publishes, the others take over.
            SIGINT and SIGTERM end it within five seconds.
            """)

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

    private func collector(_ environment: ProcessEnvironment) throws(SluiceError) -> GatewayConfiguration.Collector? {
        // An environment variable may be set but empty.
        guard let text = traceCollector ?? environment["SLUICE_TRACE_COLLECTOR"], !text.isEmpty else { return nil }
        return try GatewayConfiguration.collector(text)
    }

    func run() async throws {
        let environment = ProcessEnvironment()
        try await reporting(hasRoles: true) {
            let (servers, settings) = try KafkaFile.read(
                servers: kafka ?? environment["SLUICE_KAFKA"], file: kafkaConfig ?? environment["SLUICE_KAFKA_CONFIG"])
            var configuration = GatewayConfiguration(
                app: try await app.configuration(), directory: app.app, postgres: try app.conninfo(), kafka: servers,
                kafkaSettings: settings,
                network: try network.configuration(), plugins: try plugins.specs(), isDevelopment: false)
            configuration.admin = try admin.configuration()
            configuration.traceCollector = try collector(environment)
            try await GatewayProcess.run(configuration, json: network.json)
        }
    }
}
