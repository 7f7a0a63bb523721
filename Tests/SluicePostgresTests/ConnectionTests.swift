import SluiceCore
import SluicePostgres
import Testing

@Suite struct `A connection` {
    @Test(arguments: [("user=nobody_here", "28P01"), ("dbname=nothing_here", "3D000"), ("port=1", nil)])
    func `that is refused tells the reason and its SQLSTATE`(setting: String, state: String?) async throws {
        let conninfo = "\(try TestPostgres.conninfo()) \(setting)"
        let failure = await postgresFailure { _ = try await PostgresConnection.connect(conninfo) }
        #expect(failure?.code == .postgresUnreachable && failure?.sqlState == state, "\(failure as Any)")
        let text = failure.map { "\($0)" } ?? ""
        if let name = setting.split(separator: "=").last, state != nil { #expect(text.contains("\"\(name)\""), "\(text)") }
        #expect(!text.contains("LOCATION"), "\(text)")
    }

    @Test func `returns rows as text and tells NULL from an empty string`() async throws {
        try await TestPostgres.withConnection { connection in
            let result = try await connection.query(
                "SELECT $1::bigint + 1, $2::text, '', NULL, $3::bytea", [41, "ä", .bytes([0, 255])])
            #expect(result.count == 1)
            #expect(result.int(0, 0) == 42)
            #expect(result[0, 1] == "ä")
            #expect(result[0, 2] == "")
            #expect(result[0, 3] == nil)
            #expect(result[0, 4] == "\\x00ff")
            #expect(result[1, 0] == nil)
            #expect(result[0, 9] == nil)
        }
    }

    @Test func `names SQLSTATE, constraint and statement of an error and stays usable`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (a int CONSTRAINT only_one PRIMARY KEY); INSERT INTO t VALUES (1)")
            let failure = await postgresFailure { try await connection.execute("INSERT INTO t VALUES ($1)", [1]) }
            #expect(failure?.code == .postgresStatement)
            #expect(failure?.sqlState == "23505")
            #expect(failure?.constraint == "only_one")
            #expect(failure?.isRefusedValue == true)
            #expect(failure?.isRetriable == false)
            #expect(failure?.message.contains("INSERT INTO t") == true)
            #expect(failure?.message.contains("Key (a)=(1) already exists") == true)
            #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 1)
        }
    }

    @Test func `reports the number of rows and runs a cached statement many times`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (a int)")
            for value in 0..<20 {
                #expect(try await connection.execute("INSERT INTO t VALUES ($1)", [.int(value)], cached: true) == 1)
            }
            #expect(try await connection.execute("UPDATE t SET a = a + 1 WHERE a >= $1", [10]) == 10)
            for value in 0..<300 {
                #expect(try await connection.query("SELECT \(value)", cached: true).int(0, 0) == Int64(value))
            }
        }
    }

    @Test func `plans anew what it runs often, since a table may grow faster than its statistics`() async throws {
        try await TestPostgres.withConnection { connection in
            let plans = try await connection.withSession { session in
                try session.script(
                    "CREATE TABLE t (a int PRIMARY KEY) WITH (autovacuum_enabled = off); INSERT INTO t VALUES (1); ANALYZE t")
                let find = "SELECT a FROM t WHERE a = $1"
                func run(_ times: Int) throws -> String {
                    for _ in 0..<times { _ = try session.query(find, [7], cached: true) }
                    let name = try session.query("SELECT name FROM pg_prepared_statements WHERE statement = $1", [.text(find)])[0, 0]
                    return try session.query("EXPLAIN EXECUTE \(name ?? "")(7)").column(0).joined(separator: "\n")
                }
                let small = try run(10)
                try session.script("INSERT INTO t SELECT generate_series(2, 20000)")
                return (small: small, grown: try run(10), later: try run(PostgresSession.plannedBound))
            }
            #expect(plans.small.contains("Seq Scan") && plans.grown.contains("Seq Scan"), "\(plans)")
            #expect(plans.later.contains("Index"), "\(plans)")
        }
    }

    @Test func `says what is wrong with a transaction that has failed, however much it has run before`() async throws {
        try await TestPostgres.withConnection { connection in
            let failure = try await connection.withSession { session in
                try session.query("BEGIN")
                for _ in 0..<PostgresSession.plannedBound { _ = try session.query("SELECT 1", cached: true) }
                _ = try? session.query("SELECT 1 / 0")
                var failure: PostgresError?
                do { _ = try session.query("SELECT 1", cached: true) } catch { failure = error as? PostgresError }
                try session.query("ROLLBACK")
                #expect(try session.query("SELECT 1", cached: true).int(0, 0) == 1)
                return failure
            }
            #expect(failure?.sqlState == "25P02" && failure?.message.contains("SELECT 1") == true, "\(String(describing: failure))")
        }
    }

    @Test func `refuses a text with a NUL character instead of cutting it`() async throws {
        try await TestPostgres.withConnection { connection in
            let failure = await postgresFailure { try await connection.query("SELECT $1::text", ["a\0b"]) }
            #expect(failure?.sqlState == "22021")
            #expect(failure?.message.contains("$1") == true)
        }
    }

    @Test func `cancels a statement that outlives its limit and stays usable`() async throws {
        try await TestPostgres.withConnection { connection in
            let start = ContinuousClock.now
            let failure = await postgresFailure {
                try await connection.query("SELECT pg_sleep(60)", within: .milliseconds(100))
            }
            #expect(failure?.code == .timeout)
            #expect(ContinuousClock.now - start < .seconds(10))
            let one = try await connection.query("SELECT 1").int(0, 0)
            #expect(one == 1)
        }
    }

    @Test func `cancels the statement when its task is cancelled and stays usable`() async throws {
        try await TestPostgres.withConnection { connection in
            // Unstructured because: the test cancels it while it runs.
            let task = Task { try await connection.query("SELECT pg_sleep(60)") }
            let watcher = try await PostgresConnection.connect(TestPostgres.conninfo())
            var isRunning = false
            while !isRunning {
                isRunning =
                    try await watcher.query(
                        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active')"
                    ).bool(0, 0) == true
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let one = try await connection.query("SELECT 1").int(0, 0)
            #expect(one == 1)
        }
    }

    @Test func `says whom it could not reach without showing the password`() async throws {
        let failure = await postgresFailure {
            _ = try await PostgresConnection.connect("host=127.0.0.1 port=1 dbname=x user=u password=secret")
        }
        #expect(failure?.code == .postgresUnreachable)
        #expect(failure?.isRetriable == true)
        #expect(failure?.message.contains("127.0.0.1:1/x") == true)
        #expect(failure?.message.contains("secret") == false)
        let unreadable = await postgresFailure { _ = try await PostgresConnection.connect("not a conninfo") }
        #expect(unreadable?.code == .configInvalid)
    }

    @Test func `is broken, and says so, when the server ends it`() async throws {
        try await TestPostgres.withConnection { connection in
            let other = try await PostgresConnection.connect(TestPostgres.conninfo())
            let identifier = try await connection.withSession { $0.processIdentifier }
            try await other.query("SELECT pg_terminate_backend($1, 5000)", [.int(identifier)])
            let failure = await postgresFailure { try await connection.query("SELECT 1") }
            #expect(failure?.isRetriable == true)
            #expect(await connection.isUsable == false)
            let next = await postgresFailure { try await connection.query("SELECT 1") }
            #expect(next?.code == .postgresUnreachable)
        }
    }

    /// A server that takes the last of what waits between two looks has nothing to answer yet.
    @Test func `goes on copying when the server takes what waits at once`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TEMPORARY TABLE t (a text)")
            let line = Array((String(repeating: "x", count: 4_095) + "\n").utf8)
            let chunk = Array(repeatElement(line, count: 64).joined())
            let copied = try await connection.withSession { session in
                var left = 1_500
                return try session.copyIn("COPY t FROM STDIN WHERE false", within: .seconds(60)) {
                    left -= 1
                    return left < 0 ? nil : chunk
                }
            }
            #expect(copied == 0)
        }
    }

    @Test func `copies rows in, whatever the cuts, and nothing when the source fails`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (a int, b text)")
            let copied = try await connection.copyIn("COPY t FROM STDIN", [Array("1\tx\n2".utf8), Array("\ty\n".utf8)])
            #expect(copied == 2)
            struct Broken: Error {}
            await #expect(throws: Broken.self) {
                try await connection.withSession { try $0.copyIn("COPY t FROM STDIN", from: { throw Broken() }) }
            }
            let failure = await postgresFailure { try await connection.copyIn("COPY t FROM STDIN", [Array("x\ty\n".utf8)]) }
            #expect(failure?.sqlState == "22P02")
            #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 2)
        }
    }
}
