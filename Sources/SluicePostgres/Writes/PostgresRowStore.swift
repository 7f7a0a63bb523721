package import SluiceCore

/// The write side of the authority: client changesets, each in one transaction with the gateway's own data.
package struct PostgresRowStore: Sendable {
    package typealias Tables = @Sendable (_ type: String) throws -> TableShape

    private let pool: PostgresPool
    private let waiting: PostgresPool
    private let tables: Tables
    private let log: DurableLog

    /// The maximum number of attempts of a transaction that meets a deadlock or a row that another gateway has just inserted.
    private static let attempts = 4
    /// The time for which a waiting transaction waits for a connection. Others may hold theirs for as long as their own wait takes.
    private static let patience = Duration.seconds(60)
    /// The time for which another transaction waits for a connection, and `moment` for a lock. The holder of the lock may itself be
    /// waiting.
    private static let limit = Duration.seconds(10)
    private static let moment = "200ms"

    /// - Parameters:
    ///   - waiting: The pool for waiting transactions. It is separate, so that all others keep connections meanwhile.
    ///   - log: The wait for the WAL on behalf of `durable`.
    ///   - tables: Returns the table of a class in the current schema. Called in each transaction.
    package init(pool: PostgresPool, waiting: PostgresPool, log: DurableLog, tables: @escaping Tables) {
        self.pool = pool
        self.waiting = waiting
        self.log = log
        self.tables = tables
    }

    /// Returns once everything committed before the call is on disk, as far as PostgreSQL's settings wait for that.
    package func durable() async throws { try await log.flush() }

    /// Runs the body in one transaction and commits it. If the body throws, the transaction is rolled back.
    ///
    /// The body may run more than once, so it must keep no state outside. All of it is one call on a connection's queue. The commit
    /// of a changeset is on disk only after `durable`. If a statement waits longer than 200 ms for a lock, the transaction begins
    /// again on a connection for waiting transactions, without that limit.
    /// - Returns: The result of the body, and an LSN at or after the commit.
    /// - Throws: `DatabaseRejection` if a constraint or trigger rejects the values of a row. The error is `writeNotAllowed` if it does so
    ///   only at the commit.
    package func transaction<R: Sendable>(
        _ body: @Sendable (PostgresRowTransaction, PostgresSession) throws -> R
    ) async throws -> (result: R, lsn: LSN) {
        try await retrying { waits in
            let (pool, limit) = waits ? (waiting, Self.patience) : (self.pool, Self.limit)
            return try await pool.withSession(within: limit) { session in
                let transaction = PostgresRowTransaction(tables: tables, lockTimeout: waits ? nil : Self.moment)
                do {
                    let result = try body(transaction, session)
                    return (result, try transaction.commit(session))
                } catch {
                    session.rollback()
                    throw error
                }
            }
        }
    }

    /// Runs a body that also waits for other components. It holds a connection for waiting transactions until it returns.
    package func waitingTransaction<R: Sendable>(
        _ body: @Sendable (PostgresRowTransaction, PostgresConnection) async throws -> R
    ) async throws -> (result: R, lsn: LSN) {
        try await retrying(waits: true) { _ in
            try await waiting.withConnection(within: Self.patience) { connection in
                let transaction = PostgresRowTransaction(tables: tables)
                do {
                    let result = try await body(transaction, connection)
                    return (result, try await connection.withSession { try transaction.commit($0) })
                } catch {
                    await connection.rollback()
                    throw error
                }
            }
        }
    }

    /// Repeats the body after a lock timeout, a deadlock or a row collision.
    ///
    /// - Parameter waits: `true` if the transaction may wait without limit. After a lock timeout the body receives `true`.
    private func retrying<R: Sendable>(
        waits: Bool = false, _ body: (_ waits: Bool) async throws -> (result: R, lsn: LSN)
    ) async throws -> (result: R, lsn: LSN) {
        var (attempt, waits) = (1, waits)
        while true {
            do {
                return try await body(waits)
            } catch let failure as PostgresError {
                // lock_not_available: begin again where a wait blocks no other transaction.
                if failure.sqlState == "55P03", !waits {
                    waits = true
                    continue
                }
                // Class 40: a deadlock or a serialization failure, after which PostgreSQL has rolled everything back.
                if failure.sqlState?.hasPrefix("40") == true, attempt < Self.attempts {
                    attempt += 1
                    continue
                }
                throw failure.isRefusedValue ? failure.refusal(of: []) : failure.asSluiceError
            } catch is RowCollision {
                // The next attempt finds the row that another gateway has inserted.
                attempt += 1
                if attempt > Self.attempts {
                    throw SluiceError(
                        .writeNotAllowed, "PostgreSQL did not insert a row and gave no reason; a trigger may have suppressed it.")
                }
            }
        }
    }
}

/// An insertion without effect: another transaction has just inserted the row, or a trigger suppressed it.
///
/// A type beside `PostgresError`, because PostgreSQL reports success. It never leaves the store, which repeats the transaction.
struct RowCollision: Error {}
