import Foundation
import SluiceCore
import SluicePostgres
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `The commands for operators` {
    @Test func `list refused objects and send them again, and tell what a user has and why`() async throws {
        let server = try await DevelopmentServer.start(try DataFolder())
        // A client brings the classes.
        let agent = try await Agent.open(server, 0, board: "hall")
        try await Self.replay(server)
        try await Self.ask(server)
        let plugins = try Program("sluice", ["plugin", "running", "--admin", server.adminURL])
        #expect(await plugins.end() == .exit(0), "\(plugins.said)")
        #expect(await plugins.remainingLines() == ["generation 1, in use: no plugins"])
        await agent.close()
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    private static func replay(_ server: DevelopmentServer) async throws {
        _ = try await server.sql(#"ALTER TABLE "Pulse" ADD CONSTRAINT mild CHECK (beats < 100)"#)
        let login = ["--url", server.url, "--email", server.users[0].email, "--password", server.users[0].password]
        let ingest = try Program("sluice", ["ingest", "Pulse"] + login, input: #"{"_id": "hot", "beats": 200}"# + "\n")
        #expect(await ingest.end() == .exit(0), "\(ingest.said)")

        let list = try Program("sluice", ["ingest", "replay", "--admin", server.adminURL, "--list"])
        #expect(await list.end() == .exit(0), "\(list.said)")
        let letters = try (await list.remainingLines() ?? []).map { try JSON.parse(Array($0.utf8)) }
        #expect(letters.count == 1 && letters[0]["type"] == "Pulse" && letters[0]["reason"]?.string?.contains("mild") == true, "\(letters)")
        let first = try #require(letters.first?["id"]?.int)

        // It is no better as long as nothing has changed: it comes back with an id of its own.
        let early = try Program("sluice", ["ingest", "replay", "--admin", server.adminURL, "--type", "Pulse"])
        #expect(await early.end() == .exit(0) && early.said.contains("1 sent again, 0 refused"), "\(early.said)")
        let second = try #require(try await server.sql("SELECT min(id) FROM sluice.ingest_rejected").int(0, 0))
        #expect(second > first)
        _ = try await server.sql(#"ALTER TABLE "Pulse" DROP CONSTRAINT mild"#)
        let other = try Program("sluice", ["ingest", "replay", "--admin", server.adminURL, "--id", "\(first)"])
        #expect(await other.end() == .exit(0) && other.said.contains("0 sent again, 0 refused"), "\(other.said)")
        let again = try Program("sluice", ["ingest", "replay", "--admin", server.adminURL, "--id", "\(second)"])
        #expect(await again.end() == .exit(0) && again.said.contains("1 sent again, 0 refused"), "\(again.said)")
        #expect(try await server.sql(#"SELECT beats FROM "Pulse" WHERE _id = 'hot'"#).column(0) == ["200"])
        #expect(try await server.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 0)

        // What cannot be sent is named, and the exit code tells.
        _ = try await server.sql(
            "INSERT INTO sluice.ingest_rejected (type, source, code, reason, object) VALUES ('Pulse', 'direct', 250, 'nothing', 'nothing')")
        let bad = try Program("sluice", ["ingest", "replay", "--admin", server.adminURL])
        #expect(await bad.end() == .exit(3) && bad.said.contains("0 sent again, 1 refused"), "\(bad.said)")
    }

    private static func ask(_ server: DevelopmentServer) async throws {
        _ = try await server.sql(#"INSERT INTO "BoardNote" (_id, board, "text", votes) VALUES ('n1', 'hall', 'hello', 0)"#)
        let who = ["--admin", server.adminURL, "--user", server.users[0].email]
        let explain = try Program("sluice", ["explain"] + who + ["--type", "BoardNote", "board == 'hall' AND votes > 3"])
        #expect(await explain.end() == .exit(0), "\(explain.said)")
        let lines = await explain.remainingLines() ?? []
        #expect(lines.contains { $0.contains("hall") } && lines.contains { $0.contains("votes") }, "\(lines)")
        let refused = try Program("sluice", ["explain"] + who + ["--type", "BoardNote", "bord == 'hall'"])
        #expect(await refused.end() == .exit(1) && refused.said.contains("bord"), "\(refused.said)")

        let why = try Program("sluice", ["why"] + who + ["--type", "BoardNote", "--id", "n1"])
        #expect(await why.end() == .exit(0), "\(why.said)")
        #expect(!(await why.remainingLines() ?? []).isEmpty)
        let whole = try Program("sluice", ["why"] + who + ["--type", "BoardNote", "--id", "n1", "--json"])
        #expect(await whole.end() == .exit(0), "\(whole.said)")
        let answer = try JSON.parse(Array((await whole.remainingLines() ?? []).joined().utf8))
        #expect(answer["because"]?.array?.isEmpty == false, "\(answer.text)")
        let nobody = try Program(
            "sluice", ["why", "--admin", server.adminURL, "--user", "nobody@nowhere", "--type", "BoardNote", "--id", "n1"])
        #expect(await nobody.end() == .exit(1) && nobody.said.contains("nobody@nowhere"), "\(nobody.said)")
    }
}
