import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `The commands for operators` {
    @Test func `list refused objects and send them again, and tell what a user has and why`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--app", try Self.app(in: folder)])
        let agent = try await Agent.open(server, 0, board: "hall")
        try await Self.replay(server)
        let asker = Asker(server)
        try await Self.explain(server, asker)
        try await Self.why(server, asker)
        let plugins = try Program("sluice", ["plugin", "running", "--admin", server.adminURL])
        #expect(await plugins.end() == .exit(0), "\(plugins.said)")
        let lines = await plugins.remainingLines() ?? []
        #expect(lines.count == 2 && lines[0] == "generation 1, in use", "\(lines)")
        #expect(
            lines.last?.contains(/^    AppServicesRules \S+: running, process \d+; \d+ calls, 0 denied, 0 failed; 0 processes ended$/)
                == true, "\(lines)")
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

    /// An app directory with a role that has a condition. - Returns: its path.
    private static func app(in folder: DataFolder) throws -> String {
        func schema(_ name: String, _ properties: [String: String]) -> String {
            let kinds = properties.sorted { $0.key < $1.key }.map { #""\#($0.key)": { "bsonType": "\#($0.value)" }"# }
            let names = properties.keys.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
            return """
                {
                    "title": "\(name)", "bsonType": "object", "required": [\(names)],
                    "properties": { \(kinds.joined(separator: ", ")) }
                }
                """
        }
        func rules(_ name: String, _ role: String, read: String) -> String {
            """
            {
                "database": "public", "collection": "\(name)",
                "roles": [
                    {
                        "name": "\(role)", "apply_when": {}, "document_filters": { "read": \(read), "write": \(read) },
                        "read": true, "write": true, "insert": true, "delete": true
                    }
                ]
            }
            """
        }
        let files = [
            "realm_config.json": #"{ "app_id": "dev", "name": "boards" }"#,
            "auth/providers.json": """
            { "local-userpass": { "name": "local-userpass", "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": false } }
            """,
            "sync/config.json": """
            {
                "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
                "queryable_fields_names": ["board", "votes"], "asymmetric_tables": ["Pulse"]
            }
            """,
            "data_sources/postgres/config.json": #"{ "name": "postgres", "type": "postgresql", "config": {} }"#,
            "data_sources/postgres/public/BoardNote/schema.json": schema(
                "BoardNote", ["_id": "string", "board": "string", "text": "string", "votes": "long"]),
            "data_sources/postgres/public/BoardNote/rules.json": rules("BoardNote", "boarder", read: #"{ "votes": { "$lt": 100 } }"#),
            "data_sources/postgres/public/Pulse/schema.json": schema("Pulse", ["_id": "string", "beats": "long"]),
            "data_sources/postgres/public/Pulse/rules.json": rules("Pulse", "everybody", read: "true"),
        ]
        let app = URL(fileURLWithPath: folder.path).appendingPathComponent("app")
        for (path, text) in files {
            let file = app.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return app.path
    }

    /// An operator who asks about the first user.
    private struct Asker {
        let admin: String
        let user: String

        init(_ server: DevelopmentServer) { (admin, user) = (server.adminURL, server.users[0].email) }

        /// - Returns: the lines of the answer; those of the error when the exit code is 1.
        func callAsFunction(_ command: String, of user: String? = nil, _ arguments: String...) async throws -> (code: Int, lines: [String])
        {
            let program = try Program("sluice", [command, "--admin", admin, "--user", user ?? self.user] + arguments)
            let end = await program.end()
            let lines = await program.remainingLines() ?? []
            switch end {
            case .exit(0): return (0, lines)
            case .exit(let code): return (Int(code), [program.said])
            default: throw SluiceError(.internalError, "sluice \(command) ended by \(end): \(program.said)")
            }
        }
    }

    private static func explain(_ server: DevelopmentServer, _ ask: Asker) async throws {
        _ = try await server.sql(
            """
            INSERT INTO "BoardNote" (_id, board, "text", votes) VALUES
                ('n1', 'hall', 'hello', 7), ('few', 'hall', 'hello', 1), ('many', 'hall', 'hello', 200), ('away', 'attic', 'hello', 7)
            """)
        let (code, lines) = try await ask("explain", "--type", "BoardNote", "board == 'hall' AND votes > 3")
        #expect(code == 0)
        #expect(
            lines == [
                "asked", #"    board == "hall" and votes > 3"#,
                "role", "    boarder, which reads votes < 100",
                "condition", #"    board == "hall" and votes > 3 and votes < 100"#,
                "PostgreSQL", #"    SELECT * FROM "public"."BoardNote" AS t0"#,
                #"    WHERE (t0."board" = $1::text AND t0."votes" > $2::bigint AND t0."votes" < $3::bigint)"#,
                #"    $1 = "hall" (string)"#, "    $2 = 3 (int)", "    $3 = 100 (int)",
                "index form, without an indexed field", #"    every row: board == "hall" and votes < 100 and votes > 3"#,
                "rows", "    1",
                "cost of a change", "    unkeyed: every change of BoardNote is tested, and all its partitions are read",
            ], "\(lines)")
        let refused = try await ask("explain", "--type", "BoardNote", "bord == 'hall'")
        #expect(refused.code == 1 && refused.lines[0].contains("bord"), "\(refused)")
    }

    private static func why(_ server: DevelopmentServer, _ ask: Asker) async throws {
        // The agent's device came first.
        let client = try #require(try await server.sql("SELECT min(id) FROM sluice.client").int(0, 0))
        let query = #"board == "hall" and votes >= 0"#
        for (id, reasons) in [
            ("n1", ["Device \(client) has it, by the query \(query); the role 'boarder' permits reading objects with votes < 100."]),
            ("many", ["The role 'boarder' permits reading objects with votes < 100; not met: votes < 100"]),
            ("away", ["Device \(client) does not subscribe to it: \(query) (not met: board == \"hall\")."]),
            ("none", ["PostgreSQL has no such object."]),
        ] {
            let (code, lines) = try await ask("why", "--type", "BoardNote", "--id", id)
            #expect(code == 0 && Array(lines.prefix(1)) == reasons, "\(id): \(lines)")
        }
        let whole = try await ask("why", "--type", "BoardNote", "--id", "n1", "--json")
        let answer = try JSON.parse(Array(whole.lines.joined().utf8))
        #expect(whole.code == 0 && answer["rules"]?["role"] == "boarder" && answer["exists"] == true, "\(answer.text)")
        #expect(answer["because"]?.array?.first?.string?.hasPrefix("Device \(client) has it") == true, "\(answer.text)")
        let nobody = try await ask("why", of: "nobody@nowhere", "--type", "BoardNote", "--id", "n1")
        #expect(nobody.code == 1 && nobody.lines[0].contains("nobody@nowhere"), "\(nobody)")
    }
}
