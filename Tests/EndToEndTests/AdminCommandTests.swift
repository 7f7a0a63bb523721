import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `The command line and the admin port` {
    /// A database of its own, for as long as the body runs.
    private static func withDatabase(_ body: (String) async throws -> Void) async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_admin_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body("\(base) dbname=\(name)")) } catch { outcome = .failure(error) }
        let slots = "FROM pg_replication_slots WHERE database = '\(name)'"
        try await admin.query("SELECT pg_terminate_backend(active_pid, 30000) \(slots) AND active_pid IS NOT NULL")
        try await admin.query("SELECT pg_drop_replication_slot(slot_name) \(slots)")
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    /// Runs `sluice admin-token`. - Returns: the token.
    private static func makeToken(_ name: String, _ role: String, into file: String) async throws -> String {
        let program = try Program("sluice", ["admin-token", "--name", name, "--role", role, "--add-to", file])
        let token = try #require(await program.line())
        #expect(await program.end() == .exit(0) && !program.said.contains(token), "\(program.said)")
        return token
    }

    private static func list(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> (Program.Ending, String) {
        let program = try Program("sluice", ["ingest", "replay"] + arguments, environment: environment)
        _ = await program.remainingLines()
        return (await program.end(), program.said)
    }

    @Test func `make tokens, ask with them or by the socket, and are told what is missing`() async throws {
        try await Self.withDatabase { postgres in
            let folder = try DataFolder()
            defer { withExtendedLifetime(folder) {} }
            let app = try folder.app().path
            let apply = try Program("sluice", ["schema", "apply", "--app", app, "--postgres", postgres])
            try #require(await apply.end() == .exit(0), "\(apply.said)")
            let place = FileManager.default.temporaryDirectory.appendingPathComponent("t\(UInt32.random(in: .min ... .max))").path
            let (tokens, own, socket) = (place + ".tokens", place + ".own", place + ".sock")
            defer { for path in [tokens, own] { try? FileManager.default.removeItem(atPath: path) } }
            let serve = ["serve", "--app", app, "--postgres", postgres, "--json", "--port", "0", "--admin-port", "0"]

            let open = try Program("sluice", serve + ["--admin-host", "0.0.0.0"])
            #expect(await open.end() == .exit(78) && open.said.contains("admin-token-missing (906)"), "\(open.said)")

            let change = try await Self.makeToken("ops", "change", into: tokens)
            let read = try await Self.makeToken("eyes", "read", into: tokens)
            let twice = try Program("sluice", ["admin-token", "--name", "ops", "--add-to", tokens])
            #expect(await twice.end() == .exit(78))
            let text = try String(contentsOfFile: tokens, encoding: .utf8)
            #expect(text.split(separator: "\n").count == 2 && !text.contains(change) && !text.contains(read))
            let mode = try FileManager.default.attributesOfItem(atPath: tokens)[.posixPermissions] as? Int
            #expect(mode == 0o600)

            let gateway = try Program(
                "sluice", serve + ["--admin-host", "0.0.0.0", "--admin-token-file", tokens, "--admin-socket", socket])
            let ready = try JSON.parse(try #require(await gateway.line(), "\(gateway.said)"))
            let admin = ["--admin", try #require(ready["admin_url"]?.string)]
            let none = try await Self.list(admin)
            #expect(none.0 == .exit(1) && none.1.contains("admin-unauthorized (446)"), "\(none)")
            let hashes = try await Self.list(admin + ["--admin-token-file", tokens])
            #expect(hashes.0 == .exit(78) && hashes.1.contains("hashes"), "\(hashes)")
            try change.write(toFile: own, atomically: true, encoding: .utf8)
            #expect(try await Self.list(admin + ["--admin-token-file", own]).0 == .exit(0))
            #expect(try await Self.list(admin, ["SLUICE_ADMIN_TOKEN_FILE": own]).0 == .exit(0))
            let reader = try await Self.list(admin, ["SLUICE_ADMIN_TOKEN": read])
            #expect(reader.0 == .exit(1) && reader.1.contains("admin-forbidden (447)"), "\(reader)")
            #expect(try await Self.list(admin + ["--list"], ["SLUICE_ADMIN_TOKEN": read]).0 == .exit(0))
            let local = try await Self.list(["--admin", "unix:\(socket)"])
            #expect(local.0 == .exit(0) && local.1.contains("0 sent again"), "\(local)")
            let listed = try await Self.list(["--admin", "unix:\(socket)", "--list"])
            #expect(listed.0 == .exit(0), "\(listed)")
            gateway.signal(SIGTERM)
            #expect(await gateway.end() == .exit(0), "\(gateway.said)")
            #expect(gateway.said.contains("An operator requested a change.") && !gateway.said.contains(change), "\(gateway.said)")
            let gone = try await Self.list(["--admin", "unix:\(socket)"])
            #expect(gone.0 == .exit(1) && gone.1.contains("cannot be reached"), "\(gone)")
        }
    }
}
