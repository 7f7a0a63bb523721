import ArgumentParser
import SluiceCore
import SluiceGateway

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a gateway.",
        discussion: """
            Clients connect to --port; --admin-port has the operator console, metrics and the admin API and is bound to \
            127.0.0.1 unless told otherwise.
            Start as many gateways as you like with the same app, PostgreSQL and Kafka: one of them publishes, the others take over.
            SIGINT and SIGTERM end it within five seconds.
            """)

    @OptionGroup var app: AppOptions

    @Option(
        help: ArgumentHelp("Kafka's bootstrap servers. Default: SLUICE_KAFKA. Without either, the embedded log.", valueName: "host:port"))
    var kafka: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var plugins: PluginOptions

    func run() async throws {
        let environment = ProcessEnvironment()
        try await reporting {
            let configuration = GatewayConfiguration(
                app: try app.configuration(), directory: app.app, postgres: try app.conninfo(), kafka: kafka ?? environment["SLUICE_KAFKA"],
                network: network.configuration, plugins: try plugins.specs(), isDevelopment: false)
            try await GatewayProcess.run(configuration, json: network.json)
        }
    }
}
