import FoundationEssentials
import SluiceCore
import SluiceDevServer
import SluicePostgres
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

@Suite(.serialized) struct `A private server` {
    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = "/tmp/sluice-private-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    @Test func `is made, keeps its data and its port, and has what capture needs`() async throws {
        try await Self.withFolder { (folder) async throws in
            let first = try await PrivatePostgres.start(in: folder, database: "it's mine", settings: ["fsync": "off"])
            let connection = try await PostgresConnection.connect(first.conninfo)
            #expect(try await ServerSettings.check(connection, slot: "s").map(\.message) == [])
            try await connection.script("CREATE TABLE t AS SELECT 42 AS a")
            var status = stat()
            #expect(unsafe stat(folder + "/password", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            await first.stop()
            #expect(first.hasEnded)
            let second = try await PrivatePostgres.start(in: folder, database: "it's mine")
            #expect(second.port == first.port)
            #expect((10_000..<32_768).contains(first.port))
            #expect(LocalSocket.holders(of: second.port).contains("postgres"))
            let again = try await PostgresConnection.connect(second.conninfo)
            #expect(try await again.query("SELECT a FROM t").int(0, 0) == 42)
            let wrong = await #expect(throws: PostgresError.self) {
                _ = try await PostgresConnection.connect("host=127.0.0.1 port=\(second.port) user=sluice dbname=postgres password=wrong")
            }
            #expect(wrong?.code == .postgresUnreachable)
            let twice = await #expect(throws: PostgresError.self) { _ = try await PrivatePostgres.start(in: folder, within: .seconds(1)) }
            #expect(twice?.message.contains("already runs") == true)
            await second.stop()
        }
    }

    @Test func `gives the gateway a role that owns its database and is no superuser`() async throws {
        try await Self.withFolder { (folder) async throws in
            let first = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off"])
            await first.stop()
            let server = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off"])
            #expect(server.conninfo == first.conninfo)
            let connection = try await PostgresConnection.connect(server.conninfo)
            let role = try await connection.query(
                "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication FROM pg_roles WHERE rolname = current_user")
            #expect((0..<5).map { role.bool(0, $0) } == [false, false, false, false, true])
            try await connection.script("CREATE SCHEMA own; CREATE TABLE own.t (a int); CREATE PUBLICATION p FOR TABLE own.t")
            for statement in [
                "COPY (SELECT 1) TO PROGRAM 'true'", "COPY (SELECT 1) TO '/tmp/x'", "SELECT pg_read_file('postgresql.conf')",
                "ALTER SYSTEM SET work_mem = '1MB'", "CREATE ROLE other SUPERUSER", "SET ROLE sluice",
            ] {
                let refusal = await #expect(throws: PostgresError.self, "\(statement)") { try await connection.script(statement) }
                #expect(refusal?.sqlState == "42501", "\(statement)")
            }
            _ = try await ReplicationSlot.ensure(connection, name: "s")
            await connection.close()
            await server.stop()
        }
    }

    @Test func `gives up its making at once when it is cancelled, and begins it anew the next time`() async throws {
        try await Self.withFolder { (folder) async throws in
            let start = Task { try await PrivatePostgres.start(in: folder) }
            // PG_VERSION is among the first files that initdb writes.
            try #require(try await eventually { FileManager.default.fileExists(atPath: folder + "/data.new/PG_VERSION") })
            start.cancel()
            await #expect(throws: CancellationError.self) { try await start.value }
            #expect(!FileManager.default.fileExists(atPath: folder + "/data"))
            let server = try await PrivatePostgres.start(in: folder)
            let connection = try await PostgresConnection.connect(server.conninfo)
            #expect(try await connection.query("SELECT 1").int(0, 0) == 1)
            #expect(!FileManager.default.fileExists(atPath: folder + "/data.new"))
            await connection.close()
            await server.stop(within: .zero)
        }
    }

    @Test func `starts again after it was killed, with its lock file left behind`() async throws {
        try await Self.withFolder { (folder) async throws in
            let first = try await PrivatePostgres.start(in: folder)
            let lock = try #require(FileManager.default.contents(atPath: folder + "/data/postmaster.pid"))
            await first.stop()
            // The number of a process that lives and is no server: this one.
            let stale = String(decoding: lock, as: UTF8.self).replacing("\(first.processIdentifier)\n", with: "\(getpid())\n")
            #expect(FileManager.default.createFile(atPath: folder + "/data/postmaster.pid", contents: Data(stale.utf8)))
            let second = try await PrivatePostgres.start(in: folder)
            #expect(!second.hasEnded)
            await second.stop(within: .zero)
            #expect(second.hasEnded)
        }
    }

    #if os(Linux)
        @Test func `starts again after its first process was killed, once what that had started is gone`() async throws {
            try await Self.withFolder { (folder) async throws in
                let first = try await PrivatePostgres.start(in: folder)
                let connection = try await PostgresConnection.connect(first.conninfo)
                try await connection.script("CREATE TABLE t AS SELECT 42 AS a")
                // It waits for nothing for some seconds, so that it does not see that the server has ended.
                let busy = Task {
                    try await connection.query("DO $$ DECLARE n bigint := 0; BEGIN FOR i IN 1..10000000 LOOP n := n + i; END LOOP; END $$")
                }
                let watch = try await PostgresConnection.connect(first.conninfo)
                let working = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'"
                try #require(try await eventually { try await watch.query(working).int(0, 0) != 0 })
                kill(pid_t(first.processIdentifier), SIGKILL)
                await first.stop()
                let second = try await PrivatePostgres.start(in: folder)
                #expect(second.port == first.port)
                let again = try await PostgresConnection.connect(second.conninfo)
                #expect(try await again.query("SELECT a FROM t").int(0, 0) == 42)
                // Whether it got as far as its answer does not matter: the new server was not there before it was gone.
                _ = try? await busy.value
                await second.stop()
            }
        }

        @Test func `ends when the process that started it is killed`() async throws {
            // The body runs in a child of this process, and finds the folder by that.
            let folder = "/tmp/sluice-private-orphan-\(getpid())"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            await #expect(processExitsWith: .signal(SIGKILL)) {
                let folder = "/tmp/sluice-private-orphan-\(getppid())"
                let server = try await PrivatePostgres.start(in: folder)
                try "\(server.processIdentifier)".write(toFile: folder + "/number", atomically: false, encoding: .utf8)
                // Its connections must not keep it either.
                let connection = try await PostgresConnection.connect(server.conninfo)
                _ = try await connection.query("BEGIN")
                kill(getpid(), SIGKILL)
            }
            let number = try #require(pid_t(try String(contentsOfFile: folder + "/number", encoding: .utf8)))
            // The process is no child of this one.
            #expect(try await eventually { kill(number, 0) != 0 })
            let again = try await PrivatePostgres.start(in: folder)
            await again.stop()
        }
    #endif
}
