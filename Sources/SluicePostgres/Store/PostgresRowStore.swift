package import SluiceCore

/// The authority's write side: client changesets, each in one transaction with what the gateway keeps beside the rows.
package struct PostgresRowStore: Sendable {
    package typealias Tables = @Sendable (_ type: String) throws -> TableShape

    private let pool: PostgresPool
    private let tables: Tables

    /// How often a transaction is begun again after a deadlock, or after another gateway inserted the same row.
    private static let attempts = 4

    /// - Parameter tables: The tables as the schema is now; asked in each transaction.
    package init(pool: PostgresPool, tables: @escaping Tables) {
        self.pool = pool
        self.tables = tables
    }

    /// Runs the body in one transaction and commits it; what it throws rolls back. The body may run more than once, so it
    /// keeps no state outside.
    ///
    /// - Returns: what the body returned, and an LSN at or after the commit's.
    /// - Throws: `writeNotAllowed` when PostgreSQL refuses values (a constraint or trigger of its own, also at commit).
    package func transaction<R: Sendable>(
        _ body: @Sendable (PostgresRowTransaction) async throws -> R
    ) async throws -> (result: R, lsn: LSN) {
        var attempt = 1
        while true {
            do {
                return try await pool.withConnection { try await self.once($0, body) }
            } catch let failure as PostgresFailure {
                if failure.sqlState?.hasPrefix("40") == true, attempt < Self.attempts {
                    attempt += 1
                    continue
                }
                throw failure.isRefusedValue ? PostgresRowTransaction.refusal(failure) : failure.asSluiceError
            } catch is RowCollision {
                attempt += 1
                if attempt > Self.attempts {
                    throw SluiceError(
                        .writeNotAllowed, "PostgreSQL did not insert a row and gave no reason; a trigger may have suppressed it.")
                }
            }
        }
    }

    private func once<R: Sendable>(
        _ connection: PostgresConnection, _ body: @Sendable (PostgresRowTransaction) async throws -> R
    ) async throws -> (result: R, lsn: LSN) {
        let result = try await connection.inTransaction {
            try await body(PostgresRowTransaction(connection: connection, tables: tables))
        }
        let end = try await connection.query("SELECT pg_current_wal_insert_lsn()", cached: true)
        return (result, end[0, 0].flatMap { LSN($0) } ?? .zero)
    }
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
