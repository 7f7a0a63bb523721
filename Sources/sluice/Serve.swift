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
            SIGINT and SIGTERM end it within --grace-seconds: clients move to the other gateways, and what they sent is answered.
            """)

    @OptionGroup var options: GatewayOptions

    @Flag(help: "Once ready, print one line of JSON with the addresses on standard output.")
    var json = false

    func run() async throws {
        try await reporting(hasRoles: true) {
            try await GatewayProcess.run(try await options.configuration(), json: json)
        }
    }
}
