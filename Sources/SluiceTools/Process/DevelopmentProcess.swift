import FoundationEssentials
import SluiceCore
import SluiceDevServer
package import SluiceGateway
package import SluiceNet
import SluicePorts
import SluicePostgres
import SluiceValues

/// The command `sluice dev`: a private PostgreSQL, a log, and a gateway in development mode. All end with the command.
package struct DevelopmentProcess: Sendable {
    /// The options of the command.
    package struct Options: Sendable {
        /// nil: a temporary folder, removed at the end.
        package var dataDirectory: String?
        /// The client port; 0 is any free one.
        package var port = 8090
        /// The port of the console and the admin API; 0 is any free one.
        package var adminPort = 8091
        package var app: String?
        package var appID: String?
        /// The app directory that learned classes are written to.
        package var learn: String?
        /// nil: the embedded log.
        package var kafka: String?
        package var trustedProxies = TrustedProxies.none
        package var plugins: GatewayConfiguration.Plugins
        package var json = false

        package init(plugins: GatewayConfiguration.Plugins) { self.plugins = plugins }
    }

    private let options: Options

    /// The e-mails of the users created at the start.
    static let emails = ["alice@example.com", "bob@example.com"]

    package init(_ options: Options) { self.options = options }

    /// Runs until SIGINT or SIGTERM.
    package func run() async throws {
        try await ProcessSignals.cancelling { try await self.serve() }
    }

    private func serve() async throws {
        let configuration = try options.app.map { try AppConfiguration.load($0, appID: options.appID) } ?? .development
        let folder = try DevelopmentFolder(options.dataDirectory)
        defer { folder.removeIfTemporary() }
        StandardError.write("sluice: starting a private PostgreSQL in \(folder.path)\n")
        let postgres: PrivatePostgres
        do {
            postgres = try await PrivatePostgres.start(in: folder.path + "/postgres")
        } catch {
            throw PostgresError.forPort(error)
        }
        do {
            try await serve(configuration, postgres)
        } catch {
            await postgres.stop(within: .seconds(3))
            throw error
        }
        await postgres.stop(within: .seconds(3))
    }

    private func serve(_ app: AppConfiguration, _ postgres: PrivatePostgres) async throws {
        var configuration = GatewayConfiguration(
            app: app, directory: options.app, postgres: postgres.conninfo, kafka: options.kafka,
            network: .init(
                port: options.port, adminPort: options.adminPort, trustedProxies: options.trustedProxies,
                admission: .init(exemptsLoopback: true)),
            plugins: options.plugins,
            isDevelopment: true)
        let learned = try options.learn.map { directory throws(SluiceError) in try LearnedFiles(directory: directory, app: app) }
        defer { learned?.finish() }
        if let learned { configuration.learned = { learned.learn($0) } }
        let gateway = Gateway(configuration, logger: ProcessLogger.make(), telemetry: .bootstrap())
        try await gateway.run { addresses in
            let users = try await DevelopmentUsers.prepare(postgres.conninfo, app: app)
            if options.json {
                StandardOutput.line(ready(addresses, postgres, users))
            } else {
                StandardError.write(try await welcome(addresses, postgres, users, app: app))
            }
        }
    }

    private func ready(_ addresses: Gateway.Addresses, _ postgres: PrivatePostgres, _ users: [DevelopmentUsers.User]) -> JSON {
        [
            "url": .string(addresses.url), "admin_url": .string(addresses.adminURL), "app_id": .string(addresses.appID),
            "postgres": .string(postgres.conninfo), "kafka": options.kafka.map { .string($0) } ?? .null,
            "users": .array(users.map { ["email": .string($0.email), "password": .string($0.password)] }),
        ]
    }

    private func welcome(
        _ addresses: Gateway.Addresses, _ postgres: PrivatePostgres, _ users: [DevelopmentUsers.User], app: AppConfiguration
    ) async throws -> String {
        var lines = [
            "", "Sluice is ready. This is for development: it learns the schema from clients and, without rules, allows everything.", "",
            "  url         \(addresses.url)", "  app id      \(addresses.appID)", "  admin       \(addresses.adminURL)",
            "  console     \(addresses.adminURL)/console",
            "  PostgreSQL  \(postgres.conninfo)", "  log         \(options.kafka ?? "embedded")",
        ]
        for user in users {
            lines += ["", "  user        \(user.email)  password \(user.password)", "  token       \(user.token)"]
        }
        let type = app.schema.types.first { $0.kind == .topLevel }?.name
        lines += [
            "", type == nil ? "Once an app has connected and its classes are known, watch one:" : "Try:",
            "  sluice watch --url \(addresses.url) --app \(addresses.appID) --type \(type ?? "<Class>") TRUEPREDICATE", "",
            "Ctrl-C stops all of it.", "",
        ]
        return lines.joined(separator: "\n")
    }
}

/// The folder of the development data: the named one, or a temporary one that is removed at the end.
struct DevelopmentFolder {
    let path: String
    private let isTemporary: Bool

    init(_ named: String?) throws(SluiceError) {
        let manager = FileManager.default
        isTemporary = named == nil
        var path = named ?? "\(ProcessEnvironment()["TMPDIR"] ?? "/tmp")/sluice-dev-\(UUID().uuidString)"
        if !path.hasPrefix("/") { path = manager.currentDirectoryPath + "/" + path }
        self.path = path
        do {
            try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            throw SluiceError(
                .configInvalid, "The folder \(path) cannot be created.", fix: "Name another with --data-dir.", cause: ErrorCause(error))
        }
    }

    func removeIfTemporary() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }
}

/// The initial users. Their passwords are created once and stored in the private database.
enum DevelopmentUsers {
    struct User {
        var email: String
        var password: String
        var token: String
    }

    static func prepare(_ conninfo: String, app: AppConfiguration) async throws -> [User] {
        let pool = PostgresPool(conninfo, name: "development", size: 1)
        let users: Result<[User], any Error>
        do { users = .success(try await prepare(pool, app)) } catch { users = .failure(error) }
        await pool.close()
        return try users.get()
    }

    private static func prepare(_ pool: PostgresPool, _ app: AppConfiguration) async throws -> [User] {
        let access = try await GatewayAccess.open(
            pool: pool, app: app, isDevelopment: true, passwordCost: .stored, environment: SystemEnvironment(),
            logger: ProcessLogger.make())
        var users: [User] = []
        for email in DevelopmentProcess.emails {
            let name = "development:\(email)"
            let secret = Hex.encode((0..<6).map { _ in UInt8.random(in: .min ... .max) })
            // The first proposal is stored; later starts get the same password.
            let password = String(decoding: try await TokenStore(pool: pool).signingKey(name, proposed: Array(secret.utf8)), as: UTF8.self)
            if try await access.users.directory.find(email: email) == nil {
                _ = try await access.users.create(email: email, password: password)
            }
            let login = try await access.users.login(email: email, password: password, from: "development")
            users.append(User(email: email, password: password, token: login.accessToken))
        }
        return users
    }
}
