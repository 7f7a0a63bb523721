import Foundation
import SluiceCore
import SluiceKafka
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `sluice check` {
    /// A database of its own, for as long as the body runs; its slots go with it.
    static func withDatabase(_ body: (String) async throws -> Void) async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_check_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body("\(base) dbname=\(name)")) } catch { outcome = .failure(error) }
        try await admin.query(
            """
            SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots
            WHERE database = '\(name)' AND active_pid IS NOT NULL
            """)
        try await admin.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '\(name)'")
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    private struct Outcome {
        var code: Program.Ending
        var json: JSON
        var said: String

        func findings(_ severity: String) -> [JSON] { json["findings"]?.array?.filter { $0["severity"]?.string == severity } ?? [] }
        func messages(_ severity: String) -> [String] { findings(severity).compactMap { $0["message"]?.string } }
        func subjects(_ severity: String) -> [String] { findings(severity).compactMap { $0["subject"]?.string } }
        func commands(_ severity: String) -> [String] {
            findings(severity).flatMap { $0["commands"]?.array ?? [] }.compactMap(\.string)
        }
        var skipped: [String] { json["skipped"]?.array?.compactMap { $0["area"]?.string } ?? [] }
    }

    private static func check(_ app: String, _ options: [String], environment: [String: String] = [:]) async throws -> Outcome {
        let program = try Program(
            "sluice", ["check", "--json", "--app", app, "--port", "0", "--admin-port", "0"] + options, environment: environment)
        let lines = try #require(await program.remainingLines())
        let code = await program.end()
        return Outcome(code: code, json: try JSON.parse(lines.joined(separator: "\n")), said: program.said)
    }

    @Test func `finds what a new database lacks, and nothing once it is applied`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let empty = try await Self.check(app, ["--postgres", conninfo])
            #expect(empty.code == .exit(78) && empty.skipped == [], "\(empty)")
            #expect(empty.subjects("error") == ["schema"], "\(empty)")
            #expect(empty.findings("error")[0]["commands"]?.array?.contains(.string("sluice schema apply --app \(app)")) == true)
            // Nothing has been made by looking.
            let connection = try await PostgresConnection.connect(conninfo)
            #expect(try await connection.query("SELECT to_regnamespace('sluice') IS NULL").bool(0, 0) == true)
            let apply = try Program("sluice", ["schema", "apply", "--app", app, "--postgres", conninfo])
            #expect(await apply.end() == .exit(0), "\(apply.said)")
            let fit = try await Self.check(app, ["--postgres", conninfo])
            #expect(fit.code == .exit(0) && fit.messages("error") == [], "\(fit)")
            #expect(fit.messages("note").contains { $0.hasPrefix("The publication sluice_airport_ops") }, "\(fit)")
            await connection.close()
        }
    }

    @Test func `says every problem in one round, and once what it could not look at`() async throws {
        let folder = try DataFolder()
        let app = try folder.app().path
        let path = app + "/data_sources/postgres/public/planes/rules.json"
        let rules = try String(contentsOfFile: path, encoding: .utf8)
        try rules.replacingOccurrences(of: #""read": true,"#, with: #""read": { "_idd": "%%user.id" },"#)
            .write(toFile: path, atomically: true, encoding: .utf8)
        let program = try Program(
            "sluice",
            ["check", "--json", "--app", app, "--port", "0", "--admin-port", "0", "--admin-host", "0.0.0.0"]
                + ["--postgres", "host=127.0.0.1 port=1 password=hunter2", "--kafka", "127.0.0.1:1", "--public-url", "not a url"]
                + ["--plugin", "/nowhere/libX.so"])
        let lines = try #require(await program.remainingLines())
        #expect(await program.end() == .exit(78))
        let outcome = Outcome(code: .exit(78), json: try JSON.parse(lines.joined(separator: "\n")), said: program.said)
        #expect(Set(outcome.skipped) == ["postgres", "tables", "kafka"] && outcome.skipped.count == 3, "\(lines)")
        let areas = Set(outcome.findings("error").compactMap { $0["area"]?.string })
        #expect(areas == ["options", "app", "plugins", "postgres", "kafka", "network"], "\(lines)")
        #expect(outcome.messages("error").contains { $0.contains("has no field _idd") }, "\(lines)")
        #expect(!lines.joined().contains("hunter2"))
        withExtendedLifetime(folder) {}
    }

    @Test func `names the secrets and key sets of login providers that a gateway would lack`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let providers = """
                {
                    "custom-token": {
                        "name": "custom-token", "type": "custom-token", "disabled": false,
                        "config": { "audience": "airport", "useJWKURI": true, "jwkURI": "https://issuer.example/keys" }
                    },
                    "oauth2-google": {
                        "name": "oauth2-google", "type": "oauth2-google", "disabled": false, "config": { "clientId": "airport" },
                        "secret_config": { "clientSecret": "google" }
                    }
                }
                """
            // No program listens there.
            let keys = "http://127.0.0.1:1/keys"
            let additions = """
                {
                    "secrets": { "google": { "environment": "SLUICE_TEST_ABSENT" } },
                    "providers": {
                        "custom-token": { "jwks_url": "\(keys)", "allow_private_addresses": true },
                        "oauth2-google": { "jwks_url": "\(keys)", "allow_private_addresses": true }
                    }
                }
                """
            try providers.write(toFile: "\(app)/auth/providers.json", atomically: true, encoding: .utf8)
            try additions.write(toFile: "\(app)/sluice.json", atomically: true, encoding: .utf8)
            let outcome = try await Self.check(app, ["--postgres", conninfo])
            func logins(_ severity: String) -> [String?] {
                outcome.findings(severity).filter { $0["area"]?.string == "logins" }.map { $0["subject"]?.string }
            }
            #expect(outcome.code == .exit(78) && logins("error") == ["oauth2-google"], "\(outcome)")
            #expect(outcome.messages("error").contains { $0.contains("SLUICE_TEST_ABSENT is not set") }, "\(outcome)")
            #expect(logins("warning") == ["custom-token"], "\(outcome)")
        }
    }

    @Test func `runs beside a gateway, whose slot and port are notes`() async throws {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let (app, id) = try folder.app(named: "airport-\(UUID().uuidString.prefix(8).lowercased())")
            let apply = try Program("sluice", ["schema", "apply", "--app", app, "--postgres", conninfo])
            #expect(await apply.end() == .exit(0), "\(apply.said)")
            let options = ["--postgres", conninfo, "--kafka", kafka]
            let before = try await Self.check(app, options)
            #expect(before.code == .exit(0) && before.messages("error") == [], "\(before)")
            #expect(before.messages("note").contains { $0.contains("of the app's topics do not exist yet") }, "\(before)")
            let serve = try Program(
                "sluice", ["serve", "--json", "--app", app, "--port", "0", "--admin-port", "0"] + options)
            let ready = try JSON.parse(try #require(await serve.line(), "\(serve.said)"))
            let port = try #require(ready["url"]?.string?.split(separator: ":").last.flatMap { Int($0) })
            let beside = try await Self.beside(app, options, port: port)
            #expect(beside.code == .exit(0) && beside.messages("error") == [], "\(beside)")
            #expect(beside.messages("note").contains("A gateway serves port \(port) of 127.0.0.1."), "\(beside)")
            #expect(beside.messages("note").contains { $0.hasPrefix("A gateway reads the replication slot sluice_airport_") }, "\(beside)")
            #expect(!beside.messages("note").contains { $0.contains("topics do not exist") }, "\(beside)")
            let other = try await Self.check(app, options + ["--port", "\(port)", "--app-id", "other"])
            #expect(other.messages("error").contains("A gateway of the app \(id) serves port \(port) of 127.0.0.1."), "\(other)")
            serve.signal(SIGTERM)
            #expect(await serve.end() == .exit(0), "\(serve.said)")
            try await Self.spoil("\(id).progress", at: kafka)
            let spoilt = try await Self.check(app, options)
            #expect(spoilt.code == .exit(78), "\(spoilt)")
            #expect(spoilt.messages("error") == ["The topic \(id).progress has 3 partitions; the gateway uses 1 of it."], "\(spoilt)")
        }
    }

    /// Replaces a topic of a gateway as an operator may do by mistake.
    private static func spoil(_ topic: String, at kafka: String) async throws {
        var configuration = KafkaConfiguration(bootstrapServers: kafka, clientID: "test")
        configuration.requestTimeout = .seconds(10)
        let admin = try KafkaAdmin(configuration)
        #expect(try await admin.facts(of: [topic]).topics[topic]?.partitions == 1)
        try await admin.delete([topic])
        try await admin.create([KafkaTopic(topic, partitions: 3)])
        await admin.close()
    }

    /// Checks until the gateway has its slot, which it takes after it is ready.
    private static func beside(_ app: String, _ options: [String], port: Int) async throws -> Outcome {
        let seen = try await found {
            let outcome = try await check(app, options + ["--port", "\(port)"])
            return outcome.messages("note").contains { $0.hasPrefix("A gateway reads the replication slot") } ? outcome : nil
        }
        return try #require(seen, "no gateway reads the slot")
    }

    @Test func `mends with --fix --yes what is safe, and asks before it does`() async throws {
        try await Self.withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let apply = try Program("sluice", ["schema", "apply", "--app", app, "--postgres", conninfo])
            #expect(await apply.end() == .exit(0), "\(apply.said)")
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script("ALTER TABLE planes REPLICA IDENTITY DEFAULT")
            let identity = "SELECT relreplident FROM pg_class WHERE oid = 'planes'::regclass"
            let token = folder.path + "/tokens"
            try "0123456789abcdef0123456789abcdef\n".write(toFile: token, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: token)
            let options = ["--app", app, "--postgres", conninfo, "--port", "0", "--admin-port", "0", "--admin-token-file", token]
            // Nobody answers here, and a text in a pipe is no answer.
            let refused = try Program("sluice", ["check", "--fix"] + options, input: "yes\n")
            #expect(await refused.end() == .exit(78), "\(refused.said)")
            #expect(refused.said.contains(#"ALTER TABLE "public"."planes" REPLICA IDENTITY FULL"#), "\(refused.said)")
            #expect(refused.said.contains("chmod 600 \(token)") && refused.said.contains("pass --yes"), "\(refused.said)")
            #expect(try await connection.query(identity)[0, 0] == "d")
            let fixed = try Program("sluice", ["check", "--fix", "--yes", "--json"] + options)
            let lines = try #require(await fixed.remainingLines())
            #expect(await fixed.end() == .exit(0), "\(lines) \(fixed.said)")
            #expect(try await connection.query(identity)[0, 0] == "f")
            var status = stat()
            #expect(stat(token, &status) == 0 && status.st_mode & 0o777 == 0o600)
            // A publication that lacks tables, such as one that a DBA has made.
            let database = try #require(try await connection.query("SELECT current_database()")[0, 0])
            let publication = ReplicationNames(app: "airport-ops", database: database).publication
            try await connection.script("CREATE PUBLICATION \(publication) FOR TABLE planes")
            let published = try Program("sluice", ["check", "--fix", "--yes"] + options)
            let text = try #require(await published.remainingLines()).joined(separator: "\n")
            #expect(await published.end() == .exit(0), "\(text)")
            let count = "SELECT count(*) FROM pg_publication_tables WHERE pubname = '\(publication)'"
            #expect(try await connection.query(count).int(0, 0) == 3, "\(text)")
            let json = try JSON.parse(lines.joined(separator: "\n"))
            #expect(json["findings"]?.array?.contains { $0["fixable"]?.bool == true } == false, "\(json.text)")
            await connection.close()
        }
    }

    /// The program script gives the command a terminal.
    @Test(arguments: [("no", 0o644), ("ye", 0o644), ("Yes", 0o600), ("y", 0o600)])
    func `takes an answer on a terminal`(answer: String, mode: UInt32) async throws {
        let folder = try DataFolder()
        let token = folder.path + "/tokens"
        try "0123456789abcdef0123456789abcdef\n".write(toFile: token, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: token)
        let sluice = Program.folder.appendingPathComponent("sluice").path
        let command = "\(sluice) check --app \(folder.path) --port 0 --admin-port 0 --admin-token-file \(token) --fix"
        let program = try Program("/usr/bin/script", ["-qec", command, "/dev/null"], input: answer + "\n")
        let lines = await program.remainingLines() ?? []
        #expect(await program.end() == .exit(78), "\(lines)")
        #expect(lines.contains { $0.hasPrefix("Make these changes? [y/N] ") }, "\(lines)")
        var status = stat()
        #expect(stat(token, &status) == 0 && status.st_mode & 0o777 == mode, "\(lines)")
    }

    // MARK: Roles and tables

    /// Runs the body with a database that has the tables of an app directory.
    private static func withTables(_ body: (_ app: String, _ conninfo: String, PostgresConnection) async throws -> Void) async throws {
        try await withDatabase { conninfo in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let apply = try Program("sluice", ["schema", "apply", "--app", app, "--postgres", conninfo])
            #expect(await apply.end() == .exit(0), "\(apply.said)")
            let admin = try await PostgresConnection.connect(conninfo)
            try await body(app, conninfo, admin)
            await admin.close()
        }
    }

    @Test func `says which grants a role lacks, with statements that give it all of them`() async throws {
        try await Self.withTables { app, conninfo, admin in
            let role = "check_\(UInt64.random(in: .min ... .max))"
            try await admin.script("CREATE ROLE \(role) LOGIN REPLICATION PASSWORD 'p'")
            func look() async throws -> Outcome {
                let outcome = try await Self.check(app, ["--postgres", "\(conninfo) user=\(role) password=p"])
                #expect(!outcome.json.text.contains("refuses the connection"), "\(outcome)")
                return outcome
            }
            let bare = try await look()
            #expect(bare.messages("error").contains("The role may not create tables in the schema sluice."), "\(bare)")
            #expect(bare.commands("error").contains(#"GRANT USAGE, CREATE ON SCHEMA sluice TO "\#(role)";"#), "\(bare)")
            try await admin.script("GRANT USAGE, CREATE ON SCHEMA sluice TO \(role)")
            let blind = try await look()
            #expect(blind.messages("error").contains("The role may not write the tables of the schema sluice."), "\(blind)")
            for kind in ["TABLES", "SEQUENCES"] { try await admin.script("GRANT ALL ON ALL \(kind) IN SCHEMA sluice TO \(role)") }
            let unread = try await look()
            #expect(unread.messages("error").contains { $0.hasPrefix("The role lacks SELECT") }, "\(unread)")
            for command in unread.commands("error") { try await admin.script(command) }
            let granted = try await look()
            #expect(granted.code == .exit(0) && granted.messages("error") == [], "\(granted)")
            try await admin.script("DROP OWNED BY \(role) CASCADE; DROP ROLE \(role)")
        }
    }

    @Test func `publishes no table with --fix while one does not fit, as a gateway does`() async throws {
        try await Self.withTables { app, conninfo, admin in
            let database = try #require(try await admin.query("SELECT current_database()")[0, 0])
            let publication = ReplicationNames(app: "airport-ops", database: database).publication
            try await admin.script("CREATE PUBLICATION \(publication) FOR TABLE planes")
            func fixable() async throws -> Bool {
                let outcome = try await Self.check(app, ["--postgres", conninfo])
                #expect(outcome.messages("warning").contains { $0.contains("is not in the publication") }, "\(outcome)")
                return outcome.findings("warning").contains { $0["fixable"]?.bool == true }
            }
            #expect(try await fixable())
            try await admin.script("ALTER TABLE planes ALTER COLUMN year TYPE text")
            #expect(try await !fixable())
            let fixed = try await Self.check(app, ["--postgres", conninfo, "--fix", "--yes"])
            #expect(fixed.code == .exit(78) && fixed.messages("error").contains { $0.contains("“year” of the wrong type") }, "\(fixed)")
            let count = "SELECT count(*) FROM pg_publication_tables WHERE pubname = '\(publication)'"
            #expect(try await admin.query(count).int(0, 0) == 1)
        }
    }

    @Test func `names a table that is published with a row filter, and the statement that mends it`() async throws {
        try await Self.withTables { app, conninfo, admin in
            // PostgreSQL 15 brought row filters.
            guard try await admin.query("SELECT current_setting('server_version_num')::int >= 150000").bool(0, 0) == true else { return }
            let database = try #require(try await admin.query("SELECT current_database()")[0, 0])
            let publication = ReplicationNames(app: "airport-ops", database: database).publication
            try await admin.script("CREATE PUBLICATION \(publication) FOR TABLE planes WHERE (year > 1990)")
            let found = try await Self.check(app, ["--postgres", conninfo])
            #expect(found.subjects("error") == ["public.planes"] && found.messages("error")[0].contains("row filter"), "\(found)")
            for command in found.commands("error") { try await admin.script(command) }
            let fixed = try await Self.check(app, ["--postgres", conninfo, "--fix", "--yes"])
            #expect(fixed.code == .exit(0), "\(fixed)")
            let filters = "SELECT count(*) FROM pg_publication_tables WHERE pubname = '\(publication)' AND rowfilter IS NULL"
            #expect(try await admin.query(filters).int(0, 0) == 3)
        }
    }

    @Test func `ends a statement that does not return after five seconds, and says so`() async throws {
        try await Self.withTables { app, conninfo, admin in
            // Nothing can read the publications until the end of this transaction.
            try await admin.script("BEGIN; LOCK TABLE pg_publication IN ACCESS EXCLUSIVE MODE")
            let start = ContinuousClock.now
            let outcome = try await Self.check(app, ["--postgres", conninfo])
            let taken = ContinuousClock.now - start
            try await admin.script("ROLLBACK")
            #expect(outcome.code == .exit(78) && taken < .seconds(20), "\(taken): \(outcome)")
        }
    }

    @Test func `names an altered plugin by a path that its printed command finds from anywhere`() async throws {
        let folder = try DataFolder()
        let app = folder.path + "/my app"
        try FileManager.default.moveItem(atPath: try folder.app().path, toPath: app)
        let plugin = app + "/plugins/AppServicesRules/libAppServicesRules.so"
        let add = try Program(
            "sluice", ["plugin", "add", "--app", app, Program.folder.appendingPathComponent("libAppServicesRules.so").path])
        #expect(await add.end() == .exit(0), "\(add.said)")
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: plugin))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([0]))
        try handle.close()
        let altered = try await Self.check(app, [])
        let command = try #require(altered.commands("error").first { $0.hasPrefix("sluice plugin add ") }, "\(altered)")
        #expect(command == "sluice plugin add --app '\(app)' '\(plugin)'")
        let signed = try await Self.check(app, ["--plugin-key", "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="])
        #expect(signed.commands("error").contains("\(command) --sign KEY"), "\(signed)")
        let shell = try Program("/bin/sh", ["-c", command], environment: ["PATH": "\(Program.folder.path):/usr/bin:/bin"])
        #expect(await shell.end() == .exit(0), "\(shell.said)")
        let mended = try await Self.check(app, [])
        #expect(!mended.commands("error").contains { $0.hasPrefix("sluice plugin add ") }, "\(mended)")
        withExtendedLifetime(folder) {}
    }

    @Test func `names functions whose plugin is absent or cannot run them`() async throws {
        let folder = try DataFolder()
        let app = try folder.app().path
        defer { withExtendedLifetime(folder) {} }
        try FileManager.default.createDirectory(atPath: "\(app)/functions", withIntermediateDirectories: true)
        try #"[{ "name": "lost" }, { "name": "idle" }]"#.write(toFile: "\(app)/functions/config.json", atomically: true, encoding: .utf8)
        try #"{ "functions": { "lost": { "url": "plugin:Nobody" }, "idle": { "url": "plugin:AppServicesRules" } } }"#
            .write(toFile: "\(app)/sluice.json", atomically: true, encoding: .utf8)
        let outcome = try await Self.check(app, [])
        let found = outcome.findings("error").filter { $0["area"] == "plugins" }
        let messages = Dictionary(grouping: found) { $0["subject"]?.string ?? "" }.mapValues { $0.compactMap { $0["message"]?.string } }
        #expect(outcome.code == .exit(78) && Set(messages.keys) == ["idle", "lost"], "\(outcome)")
        #expect(messages["idle"]?.first?.contains("has no hook call_function") == true, "\(outcome)")
        #expect(messages["lost"]?.first?.contains("There is no plugin 'Nobody'") == true, "\(outcome)")
    }

    @Test(arguments: [["--yes"], ["--json", "--fix"]])
    func `refuses options that contradict each other`(options: [String]) async throws {
        let program = try Program("sluice", ["check", "--app", "/nowhere"] + options)
        #expect(await program.end() == .exit(64), "\(program.said)")
    }
}
