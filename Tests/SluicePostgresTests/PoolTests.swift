import SluiceCore
import SluicePostgres
import Testing

@Suite struct `A pool` {
    @Test func `never has more connections than its size, and serves everybody`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 3)
            let seen = try await withThrowingTaskGroup(of: Int64?.self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await pool.withConnection { try await $0.query("SELECT pg_backend_pid()").int(0, 0) }
                    }
                }
                return try await group.reduce(into: Set<Int64?>()) { $0.insert($1) }
            }
            #expect((1...3).contains(seen.count))
            await pool.close()
        }
    }

    @Test func `names itself and its size when all connections stay busy`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, name: "small", size: 1)
            try await pool.withConnection { _ in
                let failure = await postgresFailure { try await pool.withConnection(within: .milliseconds(50)) { _ in } }
                #expect(failure?.code == .timeout)
                #expect(failure?.message.contains("“small”") == true)
                #expect(failure?.message.contains("All 1 connections") == true)
            }
            await pool.close()
        }
    }

    @Test func `lets a cancelled waiter go and gives its place to the next`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 1)
            let (first, second) = try await pool.withConnection { _ in
                // Unstructured because: the waiters have to outlive the loan they wait for.
                let first = Task { try await pool.withConnection { _ in 1 } }
                let second = Task { try await pool.withConnection { _ in 2 } }  // Unstructured because: see above.
                while pool.waiting < 2 { await Task.yield() }
                first.cancel()
                while pool.waiting > 1 { await Task.yield() }
                return (first, second)
            }
            await #expect(throws: CancellationError.self) { try await first.value }
            #expect(try await second.value == 2)
            await pool.close()
        }
    }

    @Test func `rolls back what a borrower left open and replaces a broken connection`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 1)
            try await pool.withConnection { connection in
                try await connection.script("CREATE TABLE t (a int)")
                try await connection.query("BEGIN")
                try await connection.query("INSERT INTO t VALUES (1)")
            }
            let identifier = try await pool.withConnection { connection in
                #expect(try await connection.withSession { $0.isInTransaction } == false)
                #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
                return try await connection.withSession { $0.processIdentifier }
            }
            let other = try await PostgresConnection.connect(conninfo)
            try await other.query("SELECT pg_terminate_backend($1, 5000)", [.int(identifier)])
            let next = try await pool.withConnection { try await $0.withSession { $0.processIdentifier } }
            #expect(next != identifier)
            await pool.close()
            let failure = await postgresFailure { try await pool.withConnection { _ in } }
            #expect(failure?.code == .shuttingDown)
        }
    }
}
