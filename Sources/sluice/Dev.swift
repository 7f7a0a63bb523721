import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools

struct Dev: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run everything for development: a private PostgreSQL, a log, and a gateway that learns the schema from the app.",
        discussion: """
            Nothing has to be configured. The first client that connects brings its classes, and their tables are made; any field in a
            subscription becomes queryable. Two users are there to log in with. Everything ends with this command.
            """)

    @Option(
        help: ArgumentHelp("The data folder, kept between runs. Default: a temporary folder, removed at the end.", valueName: "folder")
    )
    var dataDir: String?

    @Option(help: "The port that clients connect to; 0 is any free one.")
    var port = 8090

    @Option(help: "The port of the console, metrics and the admin API, on 127.0.0.1; 0 is any free one.")
    var adminPort = 8091

    @Option(help: ArgumentHelp("An app directory to start with: schemas, rules, sync configuration.", valueName: "directory"))
    var app: String?

    @OptionGroup var id: AppIDOption

    @Option(
        help: ArgumentHelp(
            "An app directory that the classes of clients are written to, as schema.json files. May be that of --app.",
            valueName: "directory"))
    var learn: String?

    @Option(help: ArgumentHelp("A Kafka to use in place of the embedded log.", valueName: "host:port"))
    var kafka: String?

    @OptionGroup var proxies: ProxyOptions
    @OptionGroup var plugins: PluginOptions

    @Flag(help: "Once ready, print one line of JSON with addresses and users on standard output.")
    var json = false

    func run() async throws {
        try await reporting {
            var options = DevelopmentProcess.Options(plugins: try plugins.specs())
            (options.dataDirectory, options.app, options.appID, options.learn) = (dataDir, app, id.appID, learn)
            (options.port, options.adminPort, options.kafka) = (port, adminPort, kafka)
            (options.trustedProxies, options.json) = (try proxies.trusted(), json)
            try await DevelopmentProcess(options).run()
        }
    }
}
