import Foundation
import RealmSwift
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

final class BoardNote: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var board: String
    @Persisted var text: String
    @Persisted var votes: Int
}

final class Pulse: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var beats: Int
}

@Suite(.serialized, .timeLimit(.minutes(5))) struct `sluice dev` {
    @Test func `prints one line of JSON with everything that a program needs`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder)
        #expect(server.url.hasPrefix("http://127.0.0.1:"))
        #expect(server.adminURL.hasPrefix("http://127.0.0.1:"))
        #expect(server.appID == "dev")
        #expect(server.ready["kafka"] == .null)
        #expect(server.users.map(\.email) == ["alice@example.com", "bob@example.com"])
        #expect(!(try await server.token(0)).isEmpty)
        #expect(!(try await server.token(1)).isEmpty)
        #expect(try await server.sql("SELECT 1").count == 1)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
        #expect(await server.program.remainingLines() == [])
        #expect(!server.program.said.contains(" error "), "\(server.program.said)")
    }

    @Test func `serves an app at the top level of its program, as tutorials show them`() async throws {
        let (folder, files) = (try DataFolder(), try DataFolder())
        let server = try await DevelopmentServer.start(folder)
        let account = server.users[0]
        let app = try Program("app-at-top-level", [files.path, server.url, server.appID, account.email, account.password])
        #expect(await app.end() == .exit(0), "\(app.said)")
        let lines = try #require(await app.remainingLines())
        #expect(lines.suffix(2) == ["subscribed 0 1", "open 1 1"], "\(lines)")
        // The team that the anonymous user wrote in the first half; the task was outside of the view.
        #expect(try await server.sql(#"SELECT count(*) FROM "Team" WHERE "teamName" = 'Documentation'"#).int(0, 0) == 1)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `writes the classes that it learns into an app directory, which serves them`() async throws {
        let (folder, files, learned) = (try DataFolder(), try DataFolder(), try DataFolder())
        let server = try await DevelopmentServer.start(folder, ["--learn", learned.path])
        let account = server.users[0]
        let app = try Program("app-at-top-level", [files.path, server.url, server.appID, account.email, account.password])
        #expect(await app.end() == .exit(0), "\(app.said)")
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
        let check = try Program("sluice", ["migrate", "check", "--json", learned.path])
        let lines = try #require(await check.remainingLines())
        #expect(await check.end() == .exit(0), "\(lines) \(check.said)")
        let json = try JSON.parse(lines.joined())
        #expect(json["app_id"] == "dev" && json["classes"]?.array?.contains("Team") == true, "\(json.text)")
        let sync = try String(contentsOfFile: learned.path + "/sync/config.json", encoding: .utf8)
        #expect(try JSON.parse(sync)["collection_queryable_fields_names"]?.members?.isEmpty == false, "\(sync)")
    }

    @Test func `keeps a named folder's data and users from run to run`() async throws {
        let folder = try DataFolder()
        let first = try await DevelopmentServer.start(folder)
        _ = try await first.sql("CREATE TABLE kept (id int)")
        _ = try await first.sql("INSERT INTO kept VALUES (7)")
        #expect(await first.stop() == .exit(0))
        let second = try await DevelopmentServer.start(folder)
        #expect(try await second.sql("SELECT id FROM kept").int(0, 0) == 7)
        #expect(second.users.map(\.password) == first.users.map(\.password))
        #expect(!(try await second.token()).isEmpty)
        #expect(await second.stop() == .exit(0))
    }

    @Test func `serves an app directory with a rule plugin through a Kafka that is there`() async throws {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let folder = try DataFolder()
        let app = try folder.app(named: "airport-\(UUID().uuidString.prefix(8).lowercased())")
        let rules = Program.folder.appendingPathComponent("libAppServicesRules.so").path
        let server = try await DevelopmentServer.start(folder, ["--kafka", kafka, "--app", app.path, "--plugin", rules])
        #expect(server.ready["kafka"]?.string == kafka)
        #expect(server.appID == app.name)
        let token = try await server.token()
        #expect(!token.isEmpty)
        _ = try await server.sql(#"INSERT INTO airports (_id, name, lat, lon) VALUES ('ZZZ', 'Nowhere', 1, 2)"#)
        let watch = try Program(
            "sluice",
            ["watch", "--url", server.url, "--type", "Airport", "_id == 'ZZZ'"]
                + ["--email", server.users[0].email, "--password", server.users[0].password])
        let line = try #require(await watch.line(), "\(watch.said) \(server.program.said)")
        #expect(line.contains("ZZZ"))
        watch.signal(SIGTERM)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `says which port is taken`() async throws {
        let first = try await DevelopmentServer.start(try DataFolder())
        let port = try #require(first.url.split(separator: ":").last.map(String.init))
        let folder = try DataFolder()
        let second = try Program("sluice", ["dev", "--json", "--port", port, "--admin-port", "0", "--data-dir", folder.path])
        #expect(await second.end() == .exit(78))
        #expect(second.said.contains(port))
        #expect(folder.processes == [])
        #expect(await first.stop() == .exit(0))
    }

    // MARK: The end

    @Test(arguments: [SIGINT, SIGTERM])
    func `ends with its PostgreSQL within five seconds of a signal when it is ready`(signal: Int32) async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder)
        try await Self.expectEnd(server.program, folder, signal, ports: [server.url, server.adminURL])
        #expect(await server.program.end() == .exit(0), "\(server.program.said)")
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `ends within five seconds with clients connected, and without noise`(signal: Int32) async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder)
        // A client brings the class.
        let agent = try await Agent.open(server, 0, board: "a")
        let watch = try Program("sluice", ["watch", "--url", server.url, "--type", "BoardNote", "TRUEPREDICATE"])
        try await Self.expectEnd(server.program, folder, signal, ports: [server.url, server.adminURL])
        #expect(await server.program.end() == .exit(0), "\(server.program.said)")
        #expect(!server.program.said.contains("CancellationError"), "\(server.program.said)")
        #expect(!server.program.said.contains(" error "), "\(server.program.said)")
        _ = await watch.end()
        await agent.close()
    }

    @Test func `ends within five seconds of a signal at any instant of its start`() async throws {
        // How far it has got: what there is to see of it from outside.
        let stages: [@Sendable (Program, DataFolder) -> Bool] = [
            { program, _ in program.isRunning },
            { program, _ in program.said.contains("private PostgreSQL") },
            { _, folder in !folder.processes.filter { $0.contains("initdb") }.isEmpty },
            { _, folder in folder.serverIdentifier != nil },
            { _, folder in folder.processes.contains { $0.contains("bin/postgres -D") } && folder.serverIdentifier != nil },
        ]
        for (number, stage) in stages.enumerated() {
            let folder = try DataFolder()
            let program = try DevelopmentServer.launch(folder)
            #expect(try await eventually { stage(program, folder) }, "stage \(number): \(program.said)")
            try await Self.expectEnd(program, folder, number.isMultiple(of: 2) ? SIGINT : SIGTERM, ports: [], "stage \(number)")
        }
    }

    @Test func `leaves no PostgreSQL behind when it is killed`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder)
        let postgres = try #require(folder.serverIdentifier)
        server.program.signal(SIGKILL)
        #expect(await server.program.end() == .signal(SIGKILL))
        #expect(try await eventually { kill(postgres, 0) != 0 })
        #expect(try await eventually { folder.processes.isEmpty }, "\(folder.processes)")
    }

    /// Sends the signal; within five seconds the program, its PostgreSQL and its ports must be gone.
    private static func expectEnd(
        _ program: Program, _ folder: DataFolder, _ signal: Int32, ports urls: [String], _ comment: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let postgres = folder.serverIdentifier
        let start = ContinuousClock.now
        program.signal(signal)
        let ending = await program.end(within: 8)
        let taken = ContinuousClock.now - start
        #expect(
            ending != .none && taken < .seconds(5), "\(comment) \(ending) after \(taken): \(program.said)", sourceLocation: sourceLocation)
        if let postgres { #expect(kill(postgres, 0) != 0, "\(comment) PostgreSQL lives", sourceLocation: sourceLocation) }
        let isAlone = try await eventually(within: .seconds(1)) { folder.processes.isEmpty }
        #expect(isAlone, "\(comment) \(folder.processes)", sourceLocation: sourceLocation)
        for url in urls {
            let port = url.split(separator: ":").last.flatMap { Int($0) } ?? 0
            #expect(isFree(port: port), "\(comment) port \(port) is taken", sourceLocation: sourceLocation)
        }
    }

    // MARK: Learning

    @MainActor
    @Test func `learns a class and its queryable fields from the first client, and a second one syncs with it`() async throws {
        let server = try await DevelopmentServer.start(try DataFolder())
        let alice = try await Agent.open(server, 0, board: "kitchen")
        let notes = alice.realm.objects(BoardNote.self)
        try alice.realm.write {
            alice.realm.add(BoardNote(value: ["_id": "n1", "board": "kitchen", "text": "milk", "votes": 1]))
        }
        try await alice.realm.syncSession?.wait(for: .upload)
        let rows = try await server.sql(#"SELECT "text", votes FROM "BoardNote" WHERE _id = 'n1'"#)
        #expect(rows[0, 0] == "milk")
        let bob = try await Agent.open(server, 1, board: "kitchen")
        #expect(bob.realm.objects(BoardNote.self).map(\._id) == ["n1"])
        try bob.realm.write {
            bob.realm.add(BoardNote(value: ["_id": "n2", "board": "kitchen", "text": "bread", "votes": 0]))
            bob.realm.object(ofType: BoardNote.self, forPrimaryKey: "n1")?.votes = 5
        }
        try await alice.wait(notes) { Set($0.map(\._id)) == ["n1", "n2"] && $0.contains { $0._id == "n1" && $0.votes == 5 } }
        #expect(notes.map(\.text).sorted() == ["bread", "milk"])
        let plugins = try Program("sluice", ["plugin", "running", "--admin", server.adminURL])
        #expect(await plugins.end() == .exit(0), "\(plugins.said)")
        #expect(await plugins.remainingLines() == ["generation 1, in use: no plugins"])
        alice.close()
        bob.close()
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }
}

/// A client of `sluice dev`: a user with a replica.
@MainActor
final class Agent {
    let realm: Realm
    private let folder: DataFolder
    private var token: NotificationToken?

    private init(realm: Realm, folder: DataFolder) {
        self.realm = realm
        self.folder = folder
    }

    static func open(_ server: DevelopmentServer, _ user: Int, board: String) async throws -> Agent {
        let folder = try DataFolder()
        let app = App(
            id: server.appID,
            configuration: AppConfiguration(baseURL: server.url, storageDirectory: URL(fileURLWithPath: folder.path)))
        let account = server.users[user]
        let user = try await app.login(credentials: .emailPassword(email: account.email, password: account.password))
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<BoardNote>(name: "notes") { $0.board == board && $0.votes >= 0 })
        })
        configuration.objectTypes = [BoardNote.self, Pulse.self]
        return Agent(realm: try await Realm(configuration: configuration, downloadBeforeOpen: .always), folder: folder)
    }

    /// Waits until the live results are as wanted.
    func wait(_ results: Results<BoardNote>, _ isEnough: @escaping @MainActor (Results<BoardNote>) -> Bool) async throws {
        let (changes, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        token = results.observe { _ in signal.yield() }
        let alarm = alarm { signal.finish() }
        for await _ in changes where isEnough(results) { break }
        alarm.cancel()
        #expect(isEnough(results), "\(results.map { "\($0._id) \($0.text) \($0.votes)" })")
    }

    func close() {
        token?.invalidate()
        realm.syncSession?.suspend()
    }
}
