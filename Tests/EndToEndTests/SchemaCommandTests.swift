import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct `sluice schema` {
    /// A database of its own, for as long as the body runs.
    private static func withDatabase(_ body: (String) async throws -> Void) async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_schema_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body("\(base) dbname=\(name)")) } catch { outcome = .failure(error) }
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    private static func run(
        _ words: [String], _ app: String, _ conninfo: String
    ) async throws -> (code: Program.Ending, out: String, err: String) {
        let program = try Program("sluice", words + ["--app", app, "--postgres", conninfo])
        let lines = await program.remainingLines() ?? []
        return (await program.end(), lines.joined(separator: "\n"), program.said)
    }

    @Test func `prints statements, applies them, and refuses what breaks with the list that serve refuses it with`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let first = try await Self.run(["schema", "diff"], app, conninfo)
            #expect(first.code == .exit(0) && first.out.contains(#"CREATE TABLE "public"."planes""#), "\(first)")
            let applied = try await Self.run(["schema", "apply"], app, conninfo)
            #expect(applied.code == .exit(0) && applied.err.contains("version 1 now"), "\(applied)")
            let hosting = app + "/hosting"
            try FileManager.default.createDirectory(atPath: hosting, withIntermediateDirectories: true)
            try "[]".write(toFile: hosting + "/metadata.json", atomically: true, encoding: .utf8)
            let none = try await Self.run(["schema", "diff"], app, conninfo)
            #expect(none.code == .exit(0) && none.out.hasSuffix("-- Nothing changes."), "\(none)")
            // What has no effect here is said, and is no part of the SQL.
            #expect(none.err == "sluice: hosting/ has no effect here.\n" && !none.out.contains("hosting/"), "\(none)")
            try FileManager.default.removeItem(atPath: hosting)
            let path = app + "/data_sources/postgres/public/planes/schema.json"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let more = text.replacingOccurrences(
                of: #""properties": {"#, with: #""properties": { "nickname": { "bsonType": "string" }, "#)
            try more.write(toFile: path, atomically: true, encoding: .utf8)
            let grown = try await Self.run(["schema", "diff", "--json"], app, conninfo)
            let json = try JSON.parse(grown.out)
            #expect(json["version"]?.int == 1 && json["statements"]?.array?.count == 1 && grown.code == .exit(0), "\(grown)")
            let broken = more.replacingOccurrences(of: #""bsonType": "long""#, with: #""bsonType": "string""#)
            #expect(broken != more)
            try broken.write(toFile: path, atomically: true, encoding: .utf8)
            var lists: [String] = []
            for words in [["schema", "diff"], ["schema", "apply"], ["serve", "--port", "0", "--admin-port", "0"]] {
                let refused = try await Self.run(words, app, conninfo)
                #expect(refused.code == .exit(78), "\(refused)")
                lists.append(refused.err)
            }
            #expect(Set(lists).count == 1 && lists[0].contains("breaking-schema-change (904)"), "\(lists)")
            #expect(lists[0].contains("is string"), "\(lists[0])")
        }
    }

    @Test func `refuses a table with a key of another name as serve does, and leaves its rows alone`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(
                "CREATE TABLE planes (id bigserial PRIMARY KEY, tail text); INSERT INTO planes (tail) SELECT 'T' || g FROM generate_series(1, 200) g"
            )
            for words in [["schema", "diff"], ["schema", "apply"], ["serve", "--port", "0", "--admin-port", "0"]] {
                let refused = try await Self.run(words, app, conninfo)
                #expect(refused.code == .exit(1) && !refused.out.contains(#"ADD COLUMN "_id""#), "\(refused)")
                #expect(refused.err.contains(#"ALTER TABLE "public"."planes" RENAME COLUMN "id" TO "_id""#), "\(refused)")
            }
            let rows = try await connection.query(
                """
                SELECT count(*) FILTER (WHERE tail = 'T' || id), (SELECT count(*) FROM pg_attribute
                    WHERE attrelid = 'planes'::regclass AND attnum > 0) FROM planes
                """)
            #expect(rows.int(0, 0) == 200 && rows.int(0, 1) == 2)
            await connection.close()
        }
    }

    @Test func `refuses roles that name a field which the class lacks`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let path = "data_sources/postgres/public/planes/rules.json"
            let rules = try String(contentsOfFile: "\(app)/\(path)", encoding: .utf8)
            let misspelt = rules.replacingOccurrences(of: #""read": true,"#, with: #""read": { "_idd": "%%user.id" },"#)
            #expect(misspelt != rules)
            try misspelt.write(toFile: "\(app)/\(path)", atomically: true, encoding: .utf8)
            for words in [["schema", "diff"], ["schema", "apply"]] {
                let refused = try await Self.run(words, app, conninfo)
                #expect(refused.code == .exit(78) && refused.err.contains("\(path) line "), "\(refused)")
                #expect(refused.err.contains(#"has no field _idd; did you mean "_id"?"#), "\(refused)")
            }
            try rules.write(toFile: "\(app)/\(path)", atomically: true, encoding: .utf8)
            #expect(try await Self.run(["schema", "apply"], app, conninfo).code == .exit(0))
        }
    }

    @Test func `prints the grants of a role that owns nothing, with which serve starts, and without which it ends with 78`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let connection = try await PostgresConnection.connect(conninfo)
            let role = "grants_\(UInt64.random(in: .min ... .max))"
            let schema = try await Self.run(["schema", "diff"], app, conninfo)
            try await connection.script(schema.out)
            let printed = try await Self.run(["schema", "grants", "--role", role], app, conninfo)
            #expect(printed.code == .exit(0) && printed.out.contains("CREATE ROLE \"\(role)\" LOGIN REPLICATION;"), "\(printed)")
            try await connection.script("CREATE ROLE \(role) LOGIN PASSWORD 'p'")
            let own = "\(conninfo) user=\(role) password=p"
            let refused = try await Self.run(["serve", "--port", "0", "--admin-port", "0"], app, own)
            #expect(refused.code == .exit(78) && refused.err.contains("grant-missing (909)"), "\(refused)")
            #expect(refused.err.contains(#" ON "public"."planes" TO "#), "\(refused)")
            // `sluice check` says the same.
            let ports = ["--port", "0", "--admin-port", "0"]
            let unmet = try await Self.run(["check", "--json"] + ports, app, own)
            let errors = try JSON.parse(unmet.out)["findings"]?.array?.filter { $0["severity"] == "error" } ?? []
            #expect(unmet.code == .exit(78) && !errors.isEmpty && errors.allSatisfy { $0["subject"] == "grants" }, "\(unmet)")
            for error in errors { #expect(refused.err.contains(error["commands"]?.array?.first?.string ?? "-"), "\(error) \(refused)") }
            try await connection.script(try await Self.run(["schema", "grants", "--role", role], app, conninfo).out)
            let list = try await Self.run(["schema", "grants", "--role", role, "--json"], app, conninfo)
            let grants = try JSON.parse(list.out)["grants"]?.array ?? []
            #expect(!grants.isEmpty && grants.allSatisfy { $0["met"] == .bool(true) }, "\(list)")
            let met = try await Self.run(["check"] + ports, app, own)
            #expect(met.code == .exit(0), "\(met)")
            let server = try Program(
                "sluice", ["serve", "--json", "--port", "0", "--admin-port", "0", "--app", app, "--postgres", own])
            #expect(await server.line()?.contains("admin_url") == true, "\(server.said)")
            server.signal(SIGTERM)
            #expect(await server.end() == .exit(0), "\(server.said)")
            try await connection.query(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
            try await connection.script("DROP OWNED BY \(role); DROP ROLE \(role)")
            await connection.close()
        }
    }
}
