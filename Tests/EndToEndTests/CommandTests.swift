import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `The command line` {
    private static let app = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Examples/AirportOps/app").standardized.path

    @Test func `sends NDJSON with sluice ingest and names refused lines, and shows a view with sluice watch`() async throws {
        let server = try await DevelopmentServer.start(try DataFolder())
        // A client brings the classes.
        let agent = try await Agent.open(server, 0, board: "hall")
        let login = ["--url", server.url, "--email", server.users[0].email, "--password", server.users[0].password]
        let lines = [#"{"_id": "p1", "beats": 60}"#, #"{"_id": "p2", "beats": "#, #"{"_id": "p3", "beats": 72}"#]
        let ingest = try Program("sluice", ["ingest", "Pulse"] + login, input: lines.joined(separator: "\n") + "\n")
        #expect(await ingest.end() == .exit(3))
        #expect(ingest.said.contains(":2: "), "\(ingest.said)")
        #expect(ingest.said.contains("2 accepted, 1 rejected"), "\(ingest.said)")
        #expect(try await server.sql(#"SELECT _id FROM "Pulse" ORDER BY _id"#).column(0) == ["p1", "p3"])
        // More than a gateway names of one request.
        let many = Limits.ingestNamedRefusals + 50
        let refused = try Program("sluice", ["ingest", "Pulse"] + login, input: String(repeating: "{}\n", count: many))
        #expect(await refused.end() == .exit(3))
        #expect(refused.said.split(separator: "\n").count { $0.hasPrefix("standard input:") } == many)

        _ = try await server.sql(#"INSERT INTO "BoardNote" (_id, board, "text", votes) VALUES ('n1', 'hall', 'hello', 0)"#)
        let watch = try Program("sluice", ["watch", "--type", "BoardNote", "board == 'hall'"] + login)
        #expect(try await Self.event(watch) == ["snapshot", "n1"])
        _ = try await server.sql(#"INSERT INTO "BoardNote" (_id, board, "text", votes) VALUES ('n2', 'hall', 'again', 0)"#)
        // While the view is being read, a new object is part of what is there.
        #expect([["entered", "n2"], ["snapshot", "n2"]].contains(try await Self.event(watch)))
        _ = try await server.sql(#"UPDATE "BoardNote" SET votes = 4 WHERE _id = 'n2'"#)
        #expect(try await Self.event(watch) == ["updated", "n2"])
        _ = try await server.sql(#"UPDATE "BoardNote" SET board = 'attic' WHERE _id = 'n2'"#)
        #expect(try await Self.event(watch) == ["left", "n2"])
        _ = try await server.sql(#"DELETE FROM "BoardNote" WHERE _id = 'n1'"#)
        #expect(try await Self.event(watch) == ["deleted", "n1"])
        watch.signal(SIGTERM)
        #expect(await watch.end() != .none)
        await agent.close()
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `says why sluice watch and sluice ingest cannot do what is asked`() async throws {
        let server = try await DevelopmentServer.start(try DataFolder())
        let agent = try await Agent.open(server, 0, board: "hall")
        let watch = try Program("sluice", ["watch", "--url", server.url, "--type", "BoardNote", "board >>> 3"])
        #expect(await watch.end() == .exit(1))
        #expect(watch.said.hasPrefix("sluice: "), "\(watch.said)")
        let mistyped = try Program("sluice", ["watch", "--url", server.url, "--type", "BoardNotes", "board == 'hall'"])
        #expect(await mistyped.end() == .exit(1))
        #expect(mistyped.said.contains("The app has no class 'BoardNotes'. Did you mean 'BoardNote'?"), "\(mistyped.said)")
        let wrong = try Program(
            "sluice", ["ingest", "Pulse", "--url", server.url, "--email", server.users[0].email, "--password", "wrong password"])
        #expect(await wrong.end() == .exit(1))
        #expect(wrong.said.contains("password"), "\(wrong.said)")
        let large = try Program("sluice", ["ingest", "Pulse", "--url", server.url, "--batch", "\(Limits.ingestNamedRefusals + 1)"])
        #expect(await large.end() == .exit(64))
        let unknown = try Program("sluice", ["ingest", "Nothing", "--url", server.url], input: "{}\n")
        #expect(await unknown.end() == .exit(1))
        #expect(unknown.said.contains("Nothing"), "\(unknown.said)")
        await agent.close()
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `refuses a broken app directory with status 78 and every mistake by file and line`() async throws {
        let folder = try DataFolder()
        let copy = try folder.app().path
        try #"{ "app_id": "airport-ops", "#.write(toFile: copy + "/realm_config.json", atomically: true, encoding: .utf8)
        let schema = copy + "/data_sources/postgres/public/planes/schema.json"
        let text = try String(contentsOfFile: schema, encoding: .utf8)
        try text.replacingOccurrences(of: #""bsonType": "long""#, with: #""bsonType": "lung""#)
            .write(toFile: schema, atomically: true, encoding: .utf8)
        let serve = try Program(
            "sluice", ["serve", "--app", copy, "--postgres", "host=127.0.0.1 port=1", "--port", "0", "--admin-port", "0"])
        #expect(await serve.end() == .exit(78))
        #expect(serve.said.contains("realm_config.json:1:28: "), "\(serve.said)")
        #expect(serve.said.contains(/planes\/schema.json:[1-9][0-9]*:/), "\(serve.said)")
        #expect(serve.said.contains("lung"), "\(serve.said)")
    }

    @Test func `says that PostgreSQL cannot be reached instead of serving`() async throws {
        let serve = try Program(
            "sluice", ["serve", "--app", Self.app, "--postgres", "host=127.0.0.1 port=1", "--port", "0", "--admin-port", "0"])
        #expect(await serve.end() == .exit(1))
        #expect(serve.said.contains("PostgreSQL does not answer. The gateway tries again for 30 s in all."), "\(serve.said)")
        #expect(serve.said.contains("sluice: postgres-unreachable"), "\(serve.said)")
        #expect(serve.said.contains("127.0.0.1"), "\(serve.said)")
    }

    /// A wait would not heal it.
    @Test(arguments: ["user=nobody_here", "dbname=nothing_here"])
    func `says at once that PostgreSQL refuses a role or a database`(setting: String) async throws {
        let server = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"], "Run `make test`, which starts PostgreSQL.")
        let serve = try Program(
            "sluice", ["serve", "--app", Self.app, "--postgres", "\(server) \(setting)", "--port", "0", "--admin-port", "0"])
        #expect(await serve.end() == .exit(78))
        #expect(serve.said.contains("PostgreSQL refuses the connection.") && serve.said.contains("--postgres"), "\(serve.said)")
        #expect(!serve.said.contains("tries again"), "\(serve.said)")
    }

    /// The next line of `sluice watch`: the event and the object's key.
    private static func event(_ watch: Program) async throws -> [String] {
        let line = try #require(await watch.line(), "\(watch.said)")
        let json = try JSON.parse(line)
        return [json["event"]?.string, json["key"]?.string ?? json["object"]?["_id"]?.string].compactMap { $0 }
    }
}
