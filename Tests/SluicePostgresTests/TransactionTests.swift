import SluiceCore
import SluicePostgres
import Synchronization
import Testing

@Suite struct `A transaction` {
    struct Stop: Error {}

    @Test func `commits when its body returns and rolls back when it throws`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (a int)")
            try await connection.inTransaction { _ = try await connection.execute("INSERT INTO t VALUES (1)") }
            await #expect(throws: Stop.self) {
                try await connection.inTransaction {
                    _ = try await connection.execute("INSERT INTO t VALUES (2)")
                    throw Stop()
                }
            }
            try await connection.withSession { session in
                try session.inTransaction { _ = try session.execute("INSERT INTO t VALUES (3)") }
            }
            #expect(try await connection.query("SELECT a FROM t ORDER BY a").column(0) == ["1", "3"])
        }
    }

    @Test func `does not call a rolled-back transaction committed`() async throws {
        try await TestPostgres.withConnection { connection in
            let failure = await postgresFailure {
                try await connection.inTransaction { _ = try? await connection.query("SELECT 1/0") }
            }
            #expect(failure?.sqlState == "25P02")
            let one = try await connection.query("SELECT 1").int(0, 0)
            #expect(one == 1)
        }
    }

    @Test func `rolls back when its task is cancelled`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE t (a int)")
            let task = Task {  // Unstructured because: the body cancels the very task it runs in.
                try await connection.inTransaction {
                    _ = try await connection.execute("INSERT INTO t VALUES (1)")
                    withUnsafeCurrentTask { unsafe $0?.cancel() }
                    _ = try await connection.execute("INSERT INTO t VALUES (2)")
                }
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
            #expect(try await connection.withSession { $0.isInTransaction } == false)
        }
    }
}

@Suite struct `A stream of rows` {
    @Test func `hands over chunks one at a time and all rows in order`() async throws {
        try await TestPostgres.withConnection { connection in
            let seen = Mutex<[[Int64]]>([])
            try await connection.stream(
                "SELECT g FROM generate_series(1, $1::int) g", [2500], chunk: { [Int64]() },
                row: { row, chunk in
                    chunk.append(row.int(0) ?? -1)
                    return chunk.count == 1000
                },
                deliver: { chunk in seen.withLock { $0.append(chunk) } })
            #expect(seen.withLock { $0.map(\.count) } == [1000, 1000, 500])
            #expect(seen.withLock { $0.flatMap(\.self) } == Array(1...2500))
        }
    }

    @Test func `stops on the server when its consumer fails, and leaves the connection usable`() async throws {
        struct Full: Error {}
        try await TestPostgres.withConnection { connection in
            await #expect(throws: Full.self) {
                try await connection.stream(
                    "SELECT generate_series(1, 1000000000)", chunk: { 0 },
                    row: { _, count in
                        count += 1
                        return count == 10
                    },
                    deliver: { _ in throw Full() })
            }
            await #expect(throws: Full.self) {
                try await connection.withSession { session in
                    try session.stream("SELECT generate_series(1, 1000000000)") { _ in throw Full() }
                }
            }
            let failure = await postgresFailure {
                try await connection.withSession { session in
                    try session.stream("SELECT 1 / (3 - g) FROM generate_series(1, 5) g") { _ in }
                }
            }
            #expect(failure?.sqlState == "22012")
            let one = try await connection.query("SELECT 1").int(0, 0)
            #expect(one == 1)
        }
    }

    @Test func `lets no other statement in between`() async throws {
        try await TestPostgres.withConnection { connection in
            let inner = Mutex<PostgresError?>(nil)
            try await connection.stream(
                "SELECT g FROM generate_series(1, 5) g", chunk: { 0 }, row: { _, _ in true },
                deliver: { _ in
                    do {
                        try await connection.query("SELECT 1")
                    } catch let failure as PostgresError {
                        inner.withLock { $0 = failure }
                    }
                })
            #expect(inner.withLock { $0?.code } == .postgresStatement)
        }
    }
}
