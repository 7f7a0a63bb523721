import SluiceCore
import SluiceDevServer
package import SluiceGateway
package import SluiceNet
import SluicePostgres
import SluiceValues

/// The command `sluice dev`: a database, a log, and a gateway in development mode. All end with the command, except a database that exists.
package struct DevelopmentProcess: Sendable {
    /// The options of the command.
    package struct Options: Sendable {
        /// nil: a temporary folder, removed at the end.
        package var dataDirectory: String?
        /// A database to use in place of the private one, as a libpq connection string.
        package var postgres: String?
        /// The address of the client port.
        package var host = "127.0.0.1"
        /// The client port; 0 is any free one.
        package var port = 8090
        /// The port of the console and the admin API; 0 is any free one.
        package var adminPort = 8091
        package var app: String?
        package var appID: String?
        /// The sample to start with, in place of `app`.
        package var sample: SampleApp?
        /// The app directory that learned classes are written to.
        package var learn: String?
        /// nil: the embedded log.
        package var kafka: String?
        package var trustedProxies = TrustedProxies.none
        package var plugins: GatewayConfiguration.Plugins
        /// `true` to open the console in the user's browser.
        package var opensConsole = false
        package var json = false

        package init(plugins: GatewayConfiguration.Plugins) { self.plugins = plugins }
    }

    private let options: Options

    package init(_ options: Options) { self.options = options }

    /// Runs until SIGINT or SIGTERM.
    package func run() async throws {
        try await ProcessSignals.cancelling(within: .immediate) { try await self.serve() }
    }

    private func serve() async throws {
        let folder = try DevelopmentFolder(options.dataDirectory)
        defer { folder.removeIfTemporary() }
        var directory = options.app
        if let sample = options.sample {
            let path = folder.path + "/\(sample.rawValue)-app"
            try sample.write(into: path)
            directory = path
        }
        let app = try directory.map { try AppConfiguration.load($0, appID: options.appID) } ?? .development
        let database = try await open(folder, app)
        do {
            try await serve(app, in: directory, database)
        } catch {
            await database.close()
            throw error
        }
        await database.close()
    }

    private func open(_ folder: DevelopmentFolder, _ app: AppConfiguration) async throws -> DevelopmentDatabase {
        if let conninfo = options.postgres {
            let database = try await BorrowedDatabase.open(conninfo, app: app.appID)
            StandardError.write(database.notice)
            return .borrowed(database)
        }
        StandardError.write("sluice: starting a private PostgreSQL in \(folder.path)\n")
        do {
            return .own(try await PrivatePostgres.start(in: folder.path + "/postgres"))
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    private func serve(_ app: AppConfiguration, in directory: String?, _ database: DevelopmentDatabase) async throws {
        let address = DevelopmentAddress(host: options.host, interfaces: NetworkInterfaces.all())
        var configuration = GatewayConfiguration(
            app: app, directory: directory, postgres: database.conninfo, kafka: options.kafka,
            network: .init(
                host: options.host, port: options.port, adminPort: options.adminPort, trustedProxies: options.trustedProxies,
                admission: .init(exemptsLoopback: true)),
            plugins: options.plugins,
            isDevelopment: true)
        configuration.network.siteNames = address.names
        configuration.reloaded = { StandardError.write("sluice: \(TerminalText.shown($0.line))\n") }
        let learned = try options.learn.map { directory throws(SluiceError) in try LearnedFiles(directory: directory, app: app) }
        defer { learned?.finish() }
        if let learned { configuration.learned = { learned.learn($0) } }
        let gateway = Gateway(configuration, logger: ProcessLogger.make(), telemetry: .bootstrap())
        try await gateway.run { addresses in
            let users = try await DevelopmentUsers.prepare(database.conninfo, app: app)
            if let sample = options.sample { try await insert(sample, users, database) }
            let welcome = DevelopmentWelcome(
                addresses: addresses, address: address, database: database, directory: directory, users: users, app: app, options: options)
            if options.json { StandardOutput.line(welcome.json) } else { StandardError.write(welcome.text) }
            if let warning = address.warning { StandardError.write(warning) }
            if options.opensConsole { openConsole(welcome.console) }
        }
    }

    /// Opens the console. Returns at once, so that a browser that does not return delays nothing.
    private func openConsole(_ url: String) {
        Task {  // Unstructured because: the gateway serves and ends without waiting for the browser; it lasts 5 s at most.
            guard let reason = await Browser.open(url) else { return }
            StandardError.write("sluice: the console is not opened: \(reason). Its address is \(url)\n")
        }
    }

    private func insert(_ sample: SampleApp, _ users: [DevelopmentUsers.User], _ database: DevelopmentDatabase) async throws {
        try await PostgresError.translating {
            let connection = try await PostgresConnection.connect(database.conninfo)
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await sample.insert(users.map(\.id), connection)) } catch { outcome = .failure(error) }
            await connection.close()
            try outcome.get()
        }
    }
}
