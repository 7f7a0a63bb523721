package import SluiceCore

/// The authority's write side: client changesets, each in one transaction with what the gateway keeps beside the rows.
package struct PostgresRowStore: Sendable {
    package typealias Tables = @Sendable (_ type: String) throws -> TableShape

    private let pool: PostgresPool
    private let waiting: PostgresPool
    private let tables: Tables
    private let log: DurableLog

    /// How often a transaction is begun again after a deadlock, or after another gateway inserted the same row.
    private static let attempts = 4
    /// How long a waiting transaction waits for a connection: others may keep one for as long as what they wait for takes.
    private static let patience = Duration.seconds(60)
    /// How long another waits for one, and on it for a lock: who holds the lock may wait for somebody else.
    private static let limit = Duration.seconds(10)
    private static let moment = "200ms"

    /// - Parameters:
    ///   - waiting: for waiting transactions, so that what they wait for, and everybody else, has connections meanwhile.
    ///   - log: waits for the disk on behalf of `durable`.
    ///   - tables: The tables as the schema is now; asked in each transaction.
    package init(pool: PostgresPool, waiting: PostgresPool, log: DurableLog, tables: @escaping Tables) {
        self.pool = pool
        self.waiting = waiting
        self.log = log
        self.tables = tables
    }

    /// Returns once everything that was committed before the call is on disk, as far as PostgreSQL is set to wait for that.
    package func durable() async throws { try await log.flush() }

    /// Runs the body in one transaction and commits it; what it throws rolls back. The body may run more than once, so it
    /// keeps no state outside. All of it is one call on a connection's queue. A changeset's commit is `durable` only later.
    ///
    /// Where it meets a lock that somebody keeps, a waiting transaction perhaps, it begins again on a connection of those.
    /// - Returns: what the body returned, and an LSN at or after the commit's.
    /// - Throws: `RefusedRow` when PostgreSQL refuses the values of a row (a constraint or trigger of its own); `writeNotAllowed` when it does
    ///   so at commit.
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

    /// The same for a body that waits for something else in between: the connection is its own until it returns, and is one of those
    /// for waiting transactions.
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

    /// - Parameter waits: whether the transaction may wait for whatever it has to; the body is told, as it may become so.
    private func retrying<R: Sendable>(
        waits: Bool = false, _ body: (_ waits: Bool) async throws -> (result: R, lsn: LSN)
    ) async throws -> (result: R, lsn: LSN) {
        var (attempt, waits) = (1, waits)
        while true {
            do {
                return try await body(waits)
            } catch let failure as PostgresFailure {
                if failure.sqlState == "55P03", !waits {
                    waits = true
                    continue
                }
                if failure.sqlState?.hasPrefix("40") == true, attempt < Self.attempts {
                    attempt += 1
                    continue
                }
                throw failure.isRefusedValue ? failure.refusal(of: []) : failure.asSluiceError
            } catch is RowCollision {
                attempt += 1
                if attempt > Self.attempts {
                    throw SluiceError(
                        .writeNotAllowed, "PostgreSQL did not insert a row and gave no reason; a trigger may have suppressed it.")
                }
            }
        }
    }
}

/// A row whose values PostgreSQL refuses; nothing was written.
package struct RefusedRow: Error {
    package var object: ObjectKey
    /// `true` if a foreign key refused it.
    package var isReference: Bool
    /// `writeNotAllowed`, with PostgreSQL's words as its detail.
    package var error: SluiceError
}

/// A row that somebody else has just inserted.
struct RowCollision: Error {}

/// A row as it is stored, with what merging needs to know of it.
package struct LockedRow: Hashable, Sendable {
    /// In index order; nil when there is no row.
    package var row: Row?
    /// As `PostgresRowTransaction.write` stored them; nil when sync never wrote the object.
    package var clocks: [UInt8]?
    /// Commit time of the row's last writer, milliseconds since 1970; 0 when PostgreSQL no longer knows it. The present when
    /// there is no row.
    package var rowTime: Int64
    /// The number of the row's last writer, its low 32 bits; nil when there is no row.
    package var writer: UInt32?
    /// The same of the clocks; known of what was read without a lock only.
    package var clocksWriter: UInt32?

    package init(row: Row?, clocks: [UInt8]?, rowTime: Int64) {
        self.row = row
        self.clocks = clocks
        self.rowTime = rowTime
    }
}

package enum RowWrite: Hashable, Sendable {
    case insert(Row)
    /// The properties by index that changed.
    case update([Int: Value])
    case delete
    /// Only the clocks.
    case nothing
}
