import Foundation
package import Logging
package import SluiceCore
package import SluiceGateway
package import SluiceKafka
import SluicePipeline
import SluicePostgres
package import SluiceValues
import TestSupport
package import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A gateway that runs in this process, with a database of its own.
package struct RunningGateway: Sendable {
    package let url: String
    package let adminURL: String
    package let conninfo: String
    package var app: String

    package init(url: String, adminURL: String, conninfo: String, app: String = "shop") {
        (self.url, self.adminURL, self.conninfo, self.app) = (url, adminURL, conninfo, app)
    }

    package struct Answer: Sendable {
        package var status: Int
        package var json: JSON
        package var code: Int? { json["code"]?.int.map { Int($0) } }
    }

    /// A few tests at a time run a gateway: replication slots wait for every open transaction of the server, so many gateways that
    /// start together take longer than one after the other.
    private static let few = AsyncSemaphore(width: 3)

    /// Runs a gateway for as long as the body runs.
    /// - Parameters:
    ///   - plugins: names of plugins built with the tests, or paths.
    ///   - logger: what the gateway says its lines to.
    package static func with<R: Sendable>(
        files: [String: String] = [:], plugins: [String] = [], inProcess: Bool = false, isDevelopment: Bool = false,
        logger: Logger? = nil, environment: any Environment = SystemEnvironment(), traceCollector: String? = nil,
        _ body: @escaping @Sendable (RunningGateway) async throws -> R
    ) async throws -> R {
        try await few.pass {
            try await start(
                files: files, plugins: plugins, inProcess: inProcess, isDevelopment: isDevelopment, logger, environment, traceCollector,
                body)
        }
    }

    /// Gives a database in which one gateway runs after another, as when an app directory is deployed anew.
    package static func deploy<R: Sendable>(
        _ tables: String = ShopApp.tables, _ body: @escaping @Sendable (Deployment) async throws -> R
    ) async throws -> R {
        try await few.pass {
            try await GatewayDatabase.with { conninfo in
                try await TestConnections.with(conninfo) { _ = try await $0.script(tables) }
                return try await body(Deployment(conninfo: conninfo))
            }
        }
    }

    package struct Deployment: Sendable {
        package let conninfo: String

        package init(conninfo: String) { self.conninfo = conninfo }

        /// - Parameters:
        ///   - port: that of the gateway before, so that clients find this one; 0: any.
        ///   - directory: where the files are, when they are edited while the gateway runs.
        ///   - kafka: a broker; several gateways at a time need one, and an app of their own in `files`.
        package func run<R: Sendable>(
            _ files: [String: String], port: Int = 0, kafka: String? = nil, kafkaSettings: KafkaSettings = [:], isDevelopment: Bool = false,
            directory: String? = nil,
            plugins: [String] = [], logger: Logger? = nil, environment: any Environment = SystemEnvironment(),
            _ body: @escaping @Sendable (RunningGateway) async throws -> R
        ) async throws -> R {
            let files = try isDevelopment ? files : RunningGateway.listing(plugins, in: files)
            let configuration = GatewayConfiguration(
                app: try AppDirectory.read(files: files), directory: directory, postgres: conninfo, kafka: kafka,
                kafkaSettings: kafkaSettings, network: .init(port: try port > 0 ? port : LocalSocket.portToComeBackTo(), adminPort: 0),
                plugins: .init(files: isDevelopment ? plugins : []), isDevelopment: isDevelopment)
            // A process that another test starts has this one's listening sockets from its fork to its exec, so the port of a gateway that
            // has ended may be taken for a moment. The body has not begun then.
            let result = try await found(every: .milliseconds(50)) { () async throws -> R? in
                do {
                    return try await RunningGateway.run(configuration, logger: logger, environment: environment, body)
                } catch let error as SluiceError where error.code == .portInUse && port > 0 { return nil }
            }
            guard let result else { throw SluiceError(.portInUse, "The port \(port) is still in use: \(LocalSocket.holders(of: port)).") }
            return result
        }
    }

    package var port: Int { URL(string: url)?.port ?? 0 }

    /// The cost of hashing a password. The usual hash takes seconds in a build without optimization, and dozens of tests log in.
    package static let passwordCost = PasswordHasher.Cost(rounds: 16, blockSize: 1, parallelism: 1)

    private static func start<R: Sendable>(
        files: [String: String], plugins: [String], inProcess: Bool, isDevelopment: Bool, _ logger: Logger?,
        _ environment: any Environment, _ traceCollector: String?, _ body: @escaping @Sendable (RunningGateway) async throws -> R
    ) async throws -> R {
        try await GatewayDatabase.with { conninfo in
            try await TestConnections.with(conninfo) { _ = try await $0.script(ShopApp.tables) }
            let plugins = plugins.map(Built.plugin)
            let files = try isDevelopment ? files : listing(plugins, in: files)
            var configuration = GatewayConfiguration(
                app: try ShopApp.configuration(files: files), postgres: conninfo, kafka: nil, network: .init(port: 0, adminPort: 0),
                plugins: .init(files: isDevelopment ? plugins : [], inProcess: inProcess), isDevelopment: isDevelopment)
            configuration.traceCollector = try traceCollector.map { url throws(SluiceError) in try GatewayConfiguration.collector(url) }
            return try await run(configuration, logger: logger, environment: environment, body)
        }
    }

    /// The files with a list of plugins, as outside of development every plugin has to be in one.
    package static func listing(_ plugins: [String], in files: [String: String]) throws -> [String: String] {
        guard !plugins.isEmpty else { return files }
        let entries = plugins.map { path -> JSON in
            let digest = (try? PluginFile(path).sha256) ?? String(repeating: "0", count: 64)
            return ["file": .string(path), "sha256": .string(digest)]
        }
        return files.merging(["plugins.json": JSON.object([JSON.Member("plugins", .array(entries))]).text]) { $1 }
    }

    package static func run<R: Sendable>(
        _ configuration: GatewayConfiguration, logger given: Logger? = nil, environment: any Environment = SystemEnvironment(),
        _ body: @escaping @Sendable (RunningGateway) async throws -> R
    ) async throws -> R {
        var logger = Logger(label: "test") { StreamLogHandler.standardError(label: $0) }
        // What the gateway says of bad input is no news to whoever runs the tests.
        logger.logLevel = ProcessInfo.processInfo.environment["SLUICE_LOG"].flatMap { Logger.Level(rawValue: $0) } ?? .critical
        var configuration = configuration
        configuration.passwordCost = passwordCost
        let gateway = Gateway(configuration, logger: given ?? logger, environment: environment)
        let postgres = configuration.postgres
        let (addresses, ready) = AsyncStream<Gateway.Addresses>.makeStream(bufferingPolicy: .bufferingNewest(1))
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                defer { ready.finish() }
                try await gateway.run { ready.yield($0) }
                return nil
            }
            group.addTask {
                for await address in addresses {
                    return try await body(
                        RunningGateway(url: address.url, adminURL: address.adminURL, conninfo: postgres, app: address.appID))
                }
                // The gateway did not start: its own error ends the group.
                return nil
            }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw SluiceError(.internalError, "The gateway ended before the test did.")
        }
    }

    // MARK: HTTP

    /// Sends a request; what is answered, whatever the status.
    package func request(
        _ method: String = "POST", _ path: String, _ body: String = "", admin: Bool = false, token: String? = nil,
        type: String = "application/json"
    ) async throws -> Answer {
        let address = try #require(URL(string: (admin ? adminURL : url) + path))
        var request = URLRequest(url: address)
        request.httpMethod = method
        request.timeoutInterval = 180
        if method != "GET" { request.httpBody = Data(body.utf8) }
        request.setValue(type, forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await URLSession.shared.data(for: request)
        return Answer(status: (response as? HTTPURLResponse)?.statusCode ?? 0, json: (try? JSON.parse(Array(data))) ?? .null)
    }

    /// What the admin port answers to a GET that is not JSON.
    package func text(_ path: String) async throws -> String {
        let (data, _) = try await URLSession.shared.data(from: try #require(URL(string: adminURL + path)))
        return String(decoding: data, as: UTF8.self)
    }

    /// A new user. - Returns: the id.
    @discardableResult
    package func createUser(_ name: String, customData: String = "{}") async throws -> String {
        let answer = try await request(
            "POST", "/admin/v1/users", #"{"email":"\#(name)","password":"password","custom_data":\#(customData)}"#, admin: true)
        return try #require(answer.json["id"]?.string, "creating user \(name) answered \(answer)")
    }

    package func login(_ name: String, password: String = "password") async throws -> Answer {
        try await request(
            "POST", "/api/client/v2.0/app/\(app)/auth/providers/local-userpass/login", #"{"username":"\#(name)","password":"\#(password)"}"#
        )
    }

    package struct Account: Sendable {
        package let id: String
        package let refreshToken: String
        package var token: String

        package init(id: String, refreshToken: String, token: String) {
            (self.id, self.refreshToken, self.token) = (id, refreshToken, token)
        }
    }

    /// A new user with these custom data, without a password.
    package func account(customData: String = "{}") async throws -> Account {
        let login = try await request("POST", "/api/client/v2.0/app/\(app)/auth/providers/anon-user/login", "{}").json
        let id = try #require(login["user_id"]?.string, "logging in answered \(login)")
        var account = Account(id: id, refreshToken: try #require(login["refresh_token"]?.string), token: "")
        try await setCustomData(customData, of: id)
        let answer = try await request("POST", "/api/client/v2.0/auth/session", token: account.refreshToken)
        account.token = try #require(answer.json["access_token"]?.string, "a new token was asked for; the answer is \(answer)")
        return account
    }

    package func setCustomData(_ data: String, of user: String) async throws {
        let answer = try await request("PUT", "/admin/v1/users/\(user)/custom_data", data, admin: true)
        try #require(answer.status == 200, "setting custom data answered \(answer)")
    }

    package func anonymousToken() async throws -> String {
        let answer = try await request("POST", "/api/client/v2.0/app/\(app)/auth/providers/anon-user/login", "{}")
        return try #require(answer.json["access_token"]?.string, "logging in answered \(answer)")
    }

    // MARK: Sessions and data

    package func session(token: String) async throws -> TestSession { try await TestSession.connect(url, token: token, app: app) }

    /// Waits until the gateway has taken up an applied schema with a property.
    package func untilKnown(_ property: String, of type: String) async throws {
        let token = try await anonymousToken()
        let isKnown = try await TestSupport.eventually(every: .milliseconds(50)) {
            let session = try await session(token: token)
            try await session.sendHello([type])
            // A class that is not known ends the session.
            try await session.receive { $0.welcome != nil || $0.error != nil }
            session.close()
            return session.schema[type]?[property] != nil
        }
        #expect(isKnown, "\(type).\(property) has not become known")
    }

    /// A session of an anonymous user that has said hello.
    package func openSession(_ types: [String] = ["Order", "Tag"]) async throws -> TestSession {
        let session = try await session(token: try await anonymousToken())
        try await session.hello(types)
        return session
    }

    /// Runs the body beside a session of somebody else, which must get a change afterwards.
    package func besideHealthySession(_ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let healthy = try await openSession()
        try await healthy.subscribe(1, [("Order", "store == 'north'")])
        try await body()
        let key = "after-\(UInt64.random(in: .min ... .max))"
        try await sql("INSERT INTO orders (_id, store, size) VALUES ('\(key)', 'north', 1)")
        try await healthy.receive { $0.rows["Order"]?[.string(key)] != nil }
        #expect(healthy.rows["Order"]?[.string(key)]?["store"] == .string("north"), sourceLocation: sourceLocation)
        healthy.close()
    }

    package func count(_ query: String) async throws -> Int64? {
        try await TestConnections.with(conninfo) { try await $0.query(query).int(0, 0) }
    }

    /// The first column of what a query gives.
    package func texts(_ query: String) async throws -> [String] {
        try await TestConnections.with(conninfo) { connection in
            let result = try await connection.query(query)
            return (0..<result.count).map { result[$0, 0] ?? "" }
        }
    }

    /// Waits until a query gives a number; another process's work has no event to wait for.
    package func eventually(_ query: String, is number: Int64, within time: Duration = patience) async throws -> Bool {
        try await TestSupport.eventually(within: time, every: .milliseconds(50)) { try await count(query) == number }
    }

    /// Waits until every transaction of the server that is older than this call has ended, those of other tests included.
    /// Rows written before are proven older than later bootstraps then, so that a difference sends their keys alone.
    package func untilOlderTransactionsEnd() async throws {
        let last = try #require(try await count("SELECT pg_current_xact_id()::text::bigint"))
        try #require(try await eventually("SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint > \(last))::int", is: 1))
    }

    /// A metric's value now.
    package func metric(_ name: String) async throws -> Double {
        let line = try await text("/metrics").split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        return try #require(line.flatMap { Double($0.dropFirst(name.count + 1)) }, "there is no metric \(name)")
    }

    /// Waits until a metric has a value, or more.
    package func untilMetric(_ name: String, is value: Double) async throws {
        let isReached = try await TestSupport.eventually(every: .milliseconds(50)) { try await metric(name) >= value }
        #expect(isReached, "\(name) has not become \(value)")
    }

    package func sql(_ text: String) async throws {
        try await TestConnections.with(conninfo) { _ = try await $0.script(text) }
    }
}

/// Programs and plugins that are built with the tests, beside the test program.
package enum Built {
    package static let folder =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        .map { URL(fileURLWithPath: $0).deletingLastPathComponent().path } ?? "."

    /// Where plugins are when it is another build, such as one with a sanitizer (`dev/asan`), which then has the host, too.
    package static let hosted = ProcessInfo.processInfo.environment["SLUICE_TEST_PLUGIN_HOST"]

    package static func plugin(_ name: String) -> String { name.hasPrefix("/") ? name : "\(hosted ?? folder)/lib\(name).so" }
}

/// A database of its own for each test, on the server that the tests are given.
package enum GatewayDatabase {
    /// Makes the database of a gateway that has ended as new, in less time than another takes.
    package static func clear(_ conninfo: String) async throws {
        try await TestConnections.with(conninfo) { connection in
            try await dropSlots(connection, of: "current_database()")
            _ = try await connection.script(
                """
                DO $$ DECLARE name text; BEGIN
                    FOR name IN SELECT pubname FROM pg_publication LOOP EXECUTE format('DROP PUBLICATION %I', name); END LOOP;
                    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname IN ('public', 'sluice') LOOP
                        EXECUTE format('DROP SCHEMA %I CASCADE', name);
                    END LOOP;
                END $$;
                CREATE SCHEMA public
                """)
        }
    }

    private static func dropSlots(_ connection: PostgresConnection, of database: String) async throws {
        try await connection.query(
            """
            SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots
            WHERE database = \(database) AND active_pid IS NOT NULL
            """)
        try await connection.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = \(database)")
    }

    package static func with<R: Sendable>(_ body: (String) async throws -> R) async throws -> R {
        guard let base = ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"] else {
            throw SluiceError(.configMissing, "SLUICE_TEST_POSTGRES is not set.", fix: "Run `make test`.")
        }
        let name = "sluice_gateway_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let outcome: Result<R, any Error>
        do {
            let conninfo = "\(base) dbname=\(name)"
            outcome = .success(try await TestConnections.keep(conninfo) { try await body(conninfo) })
        } catch {
            outcome = .failure(error)
        }
        try await dropSlots(admin, of: "'\(name)'")
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        return try outcome.get()
    }
}
