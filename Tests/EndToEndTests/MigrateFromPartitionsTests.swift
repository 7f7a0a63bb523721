import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// The commands that correct an export and move its users, with their exit codes.
@Suite(.serialized, .timeLimit(.minutes(5))) struct `sluice migrate partitions, infer and users` {
    private let folder: DataFolder
    private var app: String { folder.path + "/app" }

    init() throws { folder = try DataFolder() }

    private func run(_ words: [String]) async throws -> Program.Ran { try await Program.sluice(["migrate"] + words) }

    private func put(_ text: String, _ path: String) throws { try MigratedApp.put(Array(text.utf8), "\(folder.path)/\(path)") }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: "\(folder.path)/\(path)", encoding: .utf8) }

    private func writeExport(read: String) throws {
        try put(#"{ "app_id": "old-abcde", "name": "old" }"#, "app/realm_config.json")
        try put(#"{ "local-userpass": { "type": "local-userpass" } }"#, "app/auth/providers.json")
        try put(
            """
            { "type": "partition", "state": "enabled", "service_name": "m", "database_name": "db",
              "partition": { "key": "part", "type": "string", "permissions": { "read": \(read), "write": { "%%user.id": "%%partition" } } } }
            """, "app/sync/config.json")
        try put(#"{ "name": "m", "type": "mongodb-atlas" }"#, "app/data_sources/m/config.json")
    }

    @Test func `an export without classes moves by the commands that each step names`() async throws {
        try writeExport(read: "true")
        let refused = try await run(["check", app])
        #expect(refused.code == .exit(78) && refused.out.contains("sluice migrate partitions DIR"), "\(refused)")
        let unasked = try await run(["partitions", app])
        #expect(unasked.code == .exit(78) && unasked.err.contains("pass --yes"), "\(unasked)")
        #expect(unasked.out.contains("file sync/config.json") && unasked.out.contains("new file data_sources/m/default_rule.json"))
        #expect(try text("app/sync/config.json").contains("partition"))
        let done = try await run(["partitions", app, "--out", folder.path + "/new", "--yes"])
        #expect(done.code == .exit(0) && done.err.contains("sluice migrate check"), "\(done)")
        #expect(try text("app/sync/config.json").contains("partition") && !text("new/sync/config.json").contains("partition"))
        // The other step: classes from the data.
        let without = try await run(["check", folder.path + "/new"])
        #expect(without.code == .exit(78) && without.out.contains("The export has no class"), "\(without)")
        try put(#"{"_id":"a","part":"x","n":1}"# + "\n" + #"{"_id":"b","part":"y","n":2.5}"#, "dump/db/items.json")
        let words = ["infer", folder.path + "/dump", "--app", folder.path + "/new"]
        let shown = try await run(words + ["--json"])
        let json = try JSON.parse(shown.out)
        #expect(shown.code == .exit(0) && json["collections"]?.array?.first?["documents"] == 2, "\(shown)")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/new/data_sources/m/db"))
        let written = try await run(words + ["--class", "db.items=Item", "--yes"])
        #expect(written.code == .exit(0) && written.out.contains("n: double, required"), "\(written)")
        let runs = try await run(["check", folder.path + "/new"])
        #expect(runs.code == .exit(0) && runs.out.contains("Read: 1 class, 1 queryable field"), "\(runs)")
        let again = try await run(["partitions", folder.path + "/new", "--yes"])
        #expect(again.code == .exit(78) && again.err.contains("does not use partition-based sync"), "\(again)")
    }

    @Test func `a permission that no role expresses denies, and the command ends with 65`() async throws {
        try writeExport(read: #"{ "%%true": { "%function": { "name": "canRead", "arguments": ["%%partition"] } } }"#)
        try put("exports = async (p) => { const r = await fetch(p); return r.ok }", "app/functions/canRead.js")
        let before = try text("app/sync/config.json")
        let shown = try await run(["partitions", app, "--json"])
        let json = try JSON.parse(shown.out)
        #expect(shown.code == .exit(65) && json["denied"]?.array?.count == 1, "\(shown)")
        #expect(try text("app/sync/config.json") == before)
        let ran = try await run(["partitions", app, "--yes"])
        #expect(ran.code == .exit(65) && ran.out.contains("function canRead: "), "\(ran)")
        let rule = try JSON.parse(try text("app/data_sources/m/default_rule.json"))
        #expect(rule["roles"]?.array?.first?["document_filters"] == ["read": false, "write": ["part": "%%user.id"]])
    }

    @Test func `an option with half of a collection is refused by each command`() async throws {
        for command in ["infer", "data"] {
            for name in ["todo.", ".tasks", "todo"] {
                let ran = try await run([command, "--app", app, "--collection", "\(name)=\(folder.path)/tasks.json"])
                #expect(ran.code == .exit(64) && ran.err.contains("--collection is db.coll="), "\(ran)")
            }
        }
    }

    @Test func `users become accounts, and nothing secret is printed`() async throws {
        try writeExport(read: "true")
        _ = try await run(["partitions", app, "--yes"])
        try put(
            #"{ "title": "Item", "bsonType": "object", "properties": { "_id": { "bsonType": "string" }, "part": { "bsonType": "string" } } }"#,
            "app/data_sources/m/db/items/schema.json")
        try put(
            """
            [{ "_id": "64a000000000000000000001", "type": "normal", "creation_date": 1650000000, "disabled": false,
               "identities": [{ "id": "64a0000000000000000000aa", "provider_type": "local-userpass" }], "data": { "email": "Ada@Example.com" } },
             { "_id": "nonsense", "identities": [] }]
            """, "users.json")
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_users_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let words = [
            "users", folder.path + "/users.json", "--app", app, "--postgres", "\(base) dbname=\(name)", "--credentials",
            folder.path + "/credentials",
        ]
        let outcome: Result<(Program.Ran, Program.Ran), any Error>
        do { outcome = .success((try await run(words), try await run(words + ["--json"]))) } catch { outcome = .failure(error) }
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        let (ran, again) = try outcome.get()
        #expect(ran.code == .exit(65) && ran.out.hasPrefix("2 users: 1 accounts made, 0 there already, 1 left out"), "\(ran)")
        let line = try JSON.parse(try text("credentials"))
        let token = try #require(line["token"]?.string)
        #expect(line["email"] == "ada@example.com" && !(ran.out + ran.err + again.out).contains(token) && !ran.out.contains("@"))
        let repeated = try JSON.parse(again.out)
        #expect(again.code == .exit(65) && repeated["existing"] == 1, "\(again)")
        let none = try await run(["users", folder.path + "/none.json", "--app", app, "--postgres", base])
        #expect(none.code == .exit(78) && none.err.contains("cannot be read"), "\(none)")
    }
}
