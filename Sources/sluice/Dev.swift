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

    @Option(
        help: ArgumentHelp(
            "A database to use in place of the private one, as a libpq connection string. Nothing of it is dropped.", valueName: "conninfo")
    )
    var postgres: String?

    @OptionGroup var place: DevPlaceOptions

    @Option(help: ArgumentHelp("An app directory to start with: schemas, rules, sync configuration.", valueName: "directory"))
    var app: String?

    @Option(help: "An app to start with, with classes, roles and rows of two users: tasks.")
    var sample: SampleApp?

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

    @Flag(help: "Open the console in a browser, if there is a display.")
    var open = false

    @Flag(help: "Once ready, print one line of JSON with addresses and users on standard output.")
    var json = false

    func validate() throws {
        if app != nil, sample != nil { throw ValidationError("--sample brings its app directory; give either it or --app.") }
        if postgres != nil, dataDir != nil, sample == nil {
            throw ValidationError("--data-dir has the data of the private PostgreSQL; with --postgres there is none.")
        }
    }

    func run() async throws {
        try await reporting {
            var options = DevelopmentProcess.Options(plugins: try plugins.specs())
            (options.dataDirectory, options.postgres, options.app) = (dataDir, postgres, app)
            (options.appID, options.sample, options.learn) = (id.appID, sample, learn)
            (options.host, options.port, options.adminPort) = (place.host, Int(place.port), Int(place.adminPort))
            (options.kafka, options.trustedProxies) = (kafka, try proxies.trusted())
            (options.opensConsole, options.json) = (open, json)
            try await DevelopmentProcess(options).run()
        }
    }
}

/// The addresses of `sluice dev`.
struct DevPlaceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The address that clients connect to: 0.0.0.0 or an address of this machine lets a phone on the same network connect.",
            valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: "The port that clients connect to; 0 is any free one.")
    var port: UInt16 = 8090

    @Option(help: "The port of the console, metrics and the admin API, on 127.0.0.1; 0 is any free one.")
    var adminPort: UInt16 = 8091
}

extension SampleApp: ExpressibleByArgument {}
