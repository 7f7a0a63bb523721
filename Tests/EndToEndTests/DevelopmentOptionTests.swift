import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `The options of sluice dev` {
    // MARK: --postgres

    private static func launch(_ arguments: [String], environment: [String: String] = [:]) throws -> Program {
        try Program("sluice", ["dev", "--json", "--port", "0", "--admin-port", "0"] + arguments, environment: environment)
    }

    private static func ready(_ program: Program) async throws -> JSON {
        try JSON.parse(try #require(await program.line(), "sluice dev did not get ready: \(program.said)"))
    }

    private static func counts(_ connection: PostgresConnection) async throws -> [Int64?] {
        let row = try await connection.query(
            """
            SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()),
                (SELECT count(*) FROM pg_publication WHERE pubname LIKE 'sluice%')
            """)
        return [row.int(0, 0), row.int(0, 1)]
    }

    @Test func `an existing database keeps its tables and rows, and loses only what the run has made`() async throws {
        try await `sluice check`.withDatabase { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script("CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine VALUES (7)")
            for run in 1...2 {
                let program = try Self.launch(["--postgres", conninfo])
                let ready = try await Self.ready(program)
                #expect(program.said.contains("It makes the replication slot and the publication sluice_dev_"), "\(program.said)")
                #expect(ready["postgres"]?.string?.contains("/sluice_check_") == true && !ready.text.contains("password="), "\(ready.text)")
                #expect(ready["users"]?.array?.count == 2)
                #expect(try await Self.counts(connection) == [1, 1], "run \(run)")
                program.signal(SIGTERM)
                #expect(await program.end() == .exit(0), "\(program.said)")
                #expect(program.said.contains("sluice: removed the replication slot and the publication sluice_dev_"), "\(program.said)")
                #expect(try await Self.counts(connection) == [0, 0], "run \(run)")
            }
            #expect(try await connection.query("SELECT id FROM mine").int(0, 0) == 7)
            // The sample's command for SQL finds this database. Its password is in the environment, as an operator would have it.
            let sample = try Self.launch(["--postgres", conninfo, "--sample", "tasks"])
            let command = try #require(try await Self.ready(sample)["try"]?.array?.dropFirst().first?.string)
            #expect(command.hasPrefix("psql 'host=") && !command.contains("password"), "\(command)")
            let password = conninfo.split(separator: " ").first { $0.hasPrefix("password=") }.map { String($0.dropFirst(9)) }
            let psql = try Self.shell(command, environment: ["PGPASSWORD": password ?? ""])
            #expect(await psql.end() == .exit(0), "\(command): \(psql.said)")
            sample.signal(SIGTERM)
            #expect(await sample.end() == .exit(0), "\(sample.said)")
            #expect(try await connection.query("SELECT is_done FROM tasks WHERE title = 'Buy milk'").bool(0, 0) == true)
            // A slot that was there before stays.
            let name = try await Self.slotName(connection, conninfo)
            try await connection.query("SELECT pg_create_logical_replication_slot('\(name)', 'pgoutput')")
            let third = try Self.launch(["--postgres", conninfo])
            _ = try await Self.ready(third)
            third.signal(SIGINT)
            #expect(await third.end() == .exit(0), "\(third.said)")
            #expect(third.said.contains("It makes the publication sluice_dev_"), "\(third.said)")
            #expect(try await Self.counts(connection) == [1, 0])
            await connection.close()
        }
    }

    @Test func `accounts that have their own password keep it, and their token is printed`() async throws {
        try await `sluice check`.withDatabase { conninfo in
            let first = try Self.launch(["--postgres", conninfo, "--sample", "tasks"])
            _ = try await Self.ready(first)
            first.signal(SIGTERM)
            #expect(await first.end() == .exit(0), "\(first.said)")
            // Another password is proposed from now on, as for an account that somebody else made.
            let connection = try await PostgresConnection.connect(conninfo)
            #expect(try await connection.execute("DELETE FROM sluice.signing_key WHERE name = 'development:bob@example.com'") == 1)
            let second = try Self.launch(["--postgres", conninfo, "--sample", "tasks"])
            let ready = try await Self.ready(second)
            let users = ready["users"]?.array ?? []
            #expect(users.map { $0["email"]?.string } == ["alice@example.com", "bob@example.com"], "\(ready.text)")
            #expect(users.first?["password"]?.string != nil && users.last?["password"] == .null, "\(ready.text)")
            let command = try #require(ready["try"]?.array?.first?.string)
            #expect(command.contains(" --token \(users.last?["token"]?.string ?? "-") "), "\(command)")
            let watch = try Self.shell(command)
            #expect(await watch.line()?.contains("snapshot") == true, "\(watch.said)")
            watch.signal(SIGTERM)
            second.signal(SIGTERM)
            #expect(await second.end() == .exit(0), "\(second.said)")
            try await connection.execute("UPDATE sluice.user_account SET disabled = true WHERE email = 'alice@example.com'")
            let third = try Self.launch(["--postgres", conninfo])
            #expect(try await Self.ready(third)["users"]?.array?.map { $0["email"]?.string } == ["bob@example.com"])
            third.signal(SIGTERM)
            #expect(await third.end() == .exit(0), "\(third.said)")
            await connection.close()
        }
    }

    @Test func `an app without log-in by password has tokens`() async throws {
        let folder = try DataFolder()
        let app = try folder.app().path
        try #"{ "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false } }"#
            .write(toFile: app + "/auth/providers.json", atomically: true, encoding: .utf8)
        let server = try await DevelopmentServer.start(folder, ["--app", app])
        let users = server.ready["users"]?.array ?? []
        #expect(users.count == 2 && users.allSatisfy { $0["password"] == .null && $0["token"]?.string?.isEmpty == false })
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `the statements that remove a slot are printed before it is removed, and the end waits a second for that`() async throws {
        try await `sluice check`.withDatabase { conninfo in
            let program = try Self.launch(["--postgres", conninfo])
            _ = try await Self.ready(program)
            let connection = try await PostgresConnection.connect(conninfo)
            let name = try await Self.slotName(connection, conninfo)
            // The publication cannot be dropped until the end of this transaction.
            try await connection.script("BEGIN; COMMENT ON PUBLICATION \(name) IS 'mine'")
            let start = ContinuousClock.now
            program.signal(SIGTERM)
            #expect(await program.end() == .exit(0), "\(program.said)")
            #expect(ContinuousClock.now - start < .seconds(4.5), "\(program.said)")
            let lines = program.said.split(separator: "\n").suffix(3)
            #expect(lines.first?.hasPrefix("sluice: removing the replication slot and the publication \(name) from ") == true, "\(lines)")
            #expect(
                lines.dropFirst().first?.hasSuffix(
                    "run: SELECT pg_drop_replication_slot('\(name)'); DROP PUBLICATION IF EXISTS \"\(name)\";") == true, "\(lines)")
            #expect(lines.last?.contains("is not removed: ") == true, "\(lines)")
            try await connection.script("ROLLBACK")
            #expect(try await Self.counts(connection) == [0, 1])
            await connection.close()
        }
    }

    @Test func `the printed psql command finds a server that only the environment names`() async throws {
        try await `sluice check`.withDatabase { conninfo in
            let values = conninfo.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
            func value(_ name: String) -> String { values.last { $0.first == name }?.last ?? "" }
            let environment = ["PGHOST": value("host"), "PGPORT": value("port"), "PGPASSWORD": value("password")]
            let sample = try Self.launch(
                ["--postgres", "dbname=\(value("dbname")) user=\(value("user"))", "--sample", "tasks"], environment: environment)
            let command = try #require(try await Self.ready(sample)["try"]?.array?.dropFirst().first?.string)
            let psql = try Self.shell(command, environment: ["PGPASSWORD": value("password")])
            #expect(await psql.end() == .exit(0), "\(command): \(psql.said)")
            sample.signal(SIGTERM)
            #expect(await sample.end() == .exit(0), "\(sample.said)")
        }
    }

    /// The name that `sluice dev` gives the slot of this database.
    private static func slotName(_ connection: PostgresConnection, _ conninfo: String) async throws -> String {
        let database = try #require(try await connection.query("SELECT current_database()")[0, 0])
        return ReplicationNames(app: "dev", database: database).slot
    }

    @Test func `a database that cannot be used ends the command at once, with the reason`() async throws {
        try await `sluice check`.withDatabase { conninfo in
            let absent = try Self.launch(["--postgres", "\(conninfo) dbname=no_such_database"])
            #expect(await absent.end(within: 20) == .exit(78), "\(absent.said)")
            #expect(absent.said.contains("no_such_database"), "\(absent.said)")
            let connection = try await PostgresConnection.connect(conninfo)
            let role = "dev_\(UInt64.random(in: .min ... .max))"
            try await connection.script("CREATE ROLE \(role) LOGIN REPLICATION PASSWORD 'p'")
            try await CompanionSchema.create(connection)
            // A statement that the role may not run is no refused connection.
            let barred = try Self.launch(["--postgres", "\(conninfo) user=\(role) password=p"])
            #expect(await barred.end(within: 20) == .exit(1), "\(barred.said)")
            #expect(barred.said.contains("permission denied for schema sluice"), "\(barred.said)")
            #expect(!barred.said.contains("refuses the connection"), "\(barred.said)")
            try await connection.script("DROP ROLE \(role)")
            let first = try Self.launch(["--postgres", conninfo])
            _ = try await Self.ready(first)
            let name = try await Self.slotName(connection, conninfo)
            let isRead = try await eventually {
                try await connection.query("SELECT active FROM pg_replication_slots WHERE slot_name = '\(name)'").bool(0, 0) == true
            }
            #expect(isRead)
            let second = try Self.launch(["--postgres", conninfo])
            #expect(await second.end(within: 20) == .exit(1), "\(second.said)")
            #expect(second.said.contains("Another gateway reads the replication slot \(name)"), "\(second.said)")
            first.signal(SIGTERM)
            #expect(await first.end() == .exit(0), "\(first.said)")
            await connection.close()
        }
    }

    @Test(arguments: [["--app", "a", "--sample", "tasks"], ["--postgres", "x", "--data-dir", "d"], ["--sample", "flowers"]])
    func `options that contradict each other are refused`(options: [String]) async throws {
        let program = try Program("sluice", ["dev"] + options)
        #expect(await program.end() == .exit(64), "\(program.said)")
    }

    @Test(arguments: [["dev", "--sample", "tasks"], ["serve", "--app", "a"], ["check", "--app", "a"]])
    func `numbers that are no ports are refused`(command: [String]) async throws {
        for option in ["--port", "--admin-port"] {
            let program = try Program("sluice", command + [option, "99999"])
            #expect(await program.end() == .exit(64), "\(program.said)")
            #expect(program.said.contains("'99999' is invalid for '\(option)"), "\(program.said)")
        }
    }

    // MARK: --sample

    /// Runs a printed command as a shell does.
    private static func shell(_ command: String, environment: [String: String] = [:]) throws -> Program {
        let path = ["PATH": "\(Program.folder.path):/usr/bin:/bin"]
        return try Program("/bin/sh", ["-c", "exec \(command)"], environment: path.merging(environment) { $1 })
    }

    @Test func `the sample has roles and rows for two users, and its printed commands show them`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--sample", "tasks"])
        #expect(server.appID == "tasks" && server.ready["app"]?.string == "\(folder.path)/tasks-app")
        let printed = server.ready["try"]?.array?.compactMap(\.string)
        let commands = try #require(printed)
        #expect(commands.count == 3)
        let watch = try Self.shell(commands[0])
        var titles: [String] = []
        for _ in 0..<5 {
            let line = try #require(await watch.line(), "\(watch.said) \(server.program.said)")
            titles.append(try JSON.parse(line)["object"]?["title"]?.string ?? line)
        }
        #expect(titles.count == 5 && !titles.contains("Plan the surprise party") && titles.contains("Buy milk"), "\(titles)")
        #expect(commands[1].hasPrefix("psql 'host=127.0.0.1"), "\(commands)")
        let psql = try Self.shell(commands[1])
        #expect(await psql.end() == .exit(0), "\(psql.said)")
        let update = try JSON.parse(try #require(await watch.line(), "\(watch.said)"))
        #expect(update["event"]?.string == "updated" && update["object"]?["is_done"]?.bool == true, "\(update.text)")
        watch.signal(SIGTERM)
        let why = try Self.shell(commands[2])
        let reasons = try #require(await why.remainingLines()).joined(separator: "\n")
        #expect(await why.end() == .exit(0) && reasons.contains("owner"), "\(reasons) \(why.said)")
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    // MARK: Edits

    /// Waits for a line of the gateway about an edit.
    private static func line(_ words: String, of server: DevelopmentServer) async throws -> String {
        let line = try await found {
            server.program.said.split(separator: "\n").map(String.init).first { $0.hasPrefix("sluice: ") && $0.contains(words) }
        }
        return try #require(line, "no line with \(words): \(server.program.said)")
    }

    @Test func `an edit of roles, fields or classes is in use at once, and one line says what has changed`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--sample", "tasks"])
        let app = "\(folder.path)/tasks-app"
        func edit(_ path: String, _ change: (String) -> String) throws {
            let text = try String(contentsOfFile: "\(app)/\(path)", encoding: .utf8)
            let edited = change(text)
            #expect(edited != text)
            try edited.write(toFile: "\(app)/\(path)", atomically: true, encoding: .utf8)
        }
        let rules = "data_sources/postgres/public/tasks/rules.json"
        try edit(rules) { $0.replacingOccurrences(of: #"{ "is_shared": true }"#, with: #"{ "is_done": true }"#) }
        let role = try await Self.line("reloaded: role", of: server)
        #expect(role == "sluice: reloaded: role owner of class Task changed")
        try edit(rules) { $0.replacingOccurrences(of: #""search""#, with: #""serach""#) }
        let refused = try await Self.line("refused", of: server)
        #expect(refused.contains("refused: \(rules):") && refused.contains("serach"), "\(refused)")
        #expect(refused.hasSuffix("; the old rules and classes stay"), "\(refused)")
        try edit(rules) { $0.replacingOccurrences(of: #""serach""#, with: #""search""#) }
        let note = #"{ "title": "Remark", "bsonType": "object", "required": ["_id"], "properties": { "_id": { "bsonType": "string" } } }"#
        let place = "\(app)/data_sources/postgres/public/remarks"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try note.write(toFile: "\(place)/schema.json", atomically: true, encoding: .utf8)
        #expect(try await Self.line("class Remark", of: server).contains("class Remark is new (top_level, 1 properties)"))
        #expect(try await server.sql("SELECT to_regclass('public.remarks') IS NOT NULL").bool(0, 0) == true)
        try edit("sync/config.json") { $0.replacingOccurrences(of: #""is_done", "#, with: #""is_done", "title", "#) }
        #expect(try await Self.line("queryable", of: server) == "sluice: reloaded: Task.title is queryable")
        try edit("data_sources/postgres/public/tasks/schema.json") {
            $0.replacingOccurrences(of: #""title": { "bsonType": "string" }"#, with: #""title": { "bsonType": "long" }"#)
        }
        let retyped = try await Self.line("Task.title is int", of: server)
        #expect(retyped.hasPrefix("sluice: refused: ") && retyped.hasSuffix("; the old rules and classes stay"), "\(retyped)")
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `a class whose mapping was wrong is served once the edit is corrected`() async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--sample", "tasks"])
        _ = try await server.sql("CREATE TABLE remarks (key text PRIMARY KEY, note text)")
        let place = "\(folder.path)/tasks-app/data_sources/postgres/public/remarks"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        func write(key: String) throws {
            let schema = """
                { "title": "Remark", "bsonType": "object", "required": ["_id"], "mapping": { "_id": "\(key)" },
                  "properties": { "_id": { "bsonType": "string" }, "note": { "bsonType": "string" } } }
                """
            try schema.write(toFile: "\(place)/schema.json", atomically: true, encoding: .utf8)
        }
        try write(key: "kee")
        #expect(try await Self.line("refused", of: server).contains("lacks the column “kee”"))
        try write(key: "key")
        #expect(try await Self.line("class Remark", of: server).contains("class Remark is new (top_level, 2 properties)"))
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    // MARK: --host and --open

    @Test func `another address of the machine is bound, printed and served`() async throws {
        let server = try await DevelopmentServer.start(try DataFolder(), ["--host", "127.0.0.2"])
        #expect(server.url.hasPrefix("http://127.0.0.2:") && server.adminURL.hasPrefix("http://127.0.0.1:"))
        #expect(!(try await server.token()).isEmpty)
        #expect(!server.program.said.contains("WARNING"), "\(server.program.said)")
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `the console is opened where there is a display, and its address is printed where there is none`() async throws {
        let tools = try DataFolder()
        let (program, page) = (tools.path + "/xdg-open", tools.path + "/page")
        // It stays, as some browsers do.
        try "#!/bin/sh\necho \"$1\" > \(page)\nexec sleep 8\n".write(toFile: program, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let folder = try DataFolder()
        let open = try Self.launch(
            ["--open", "--data-dir", folder.path], environment: ["PATH": "\(tools.path):\(path)", "DISPLAY": ":77"])
        let ready = try await Self.ready(open)
        let opened = try await found { try? String(contentsOfFile: page, encoding: .utf8) }
        #expect(opened == (ready["console"]?.string ?? "") + "\n", "\(open.said)")
        open.signal(SIGTERM)
        #expect(await open.end() == .exit(0), "\(open.said)")
        let other = try DataFolder()
        let closed = try Self.launch(
            ["--open", "--data-dir", other.path], environment: ["PATH": "\(tools.path):\(path)", "DISPLAY": "", "WAYLAND_DISPLAY": ""])
        let console = try #require(try await Self.ready(closed)["console"]?.string)
        let isSaid = try await eventually { closed.said.contains("the console is not opened: there is no display") }
        #expect(isSaid && closed.said.contains(console), "\(closed.said)")
        closed.signal(SIGTERM)
        #expect(await closed.end() == .exit(0), "\(closed.said)")
        withExtendedLifetime((folder, other, tools)) {}
    }
}
