package import SluiceCore

/// The database's knowledge of transactions that a client has seen.
package enum History {
    /// The result of a search for a history anchor.
    package enum Finding: Hashable, Sendable {
        case seen
        /// The database never had the transaction: its number is unused or belongs to another transaction.
        case unseen
        /// The commit time is no longer kept, or the transaction with that number failed.
        case forgotten
    }

    /// Compares a history anchor with the database's commit times.
    package static func find(_ witness: HistoryAnchor, _ pool: PostgresPool) async throws -> Finding {
        try await pool.perform { session in
            let sql = "SELECT \(finding("$1::text::xid", "$2::bigint"))"
            return Finding(try session.query(sql, witness.parameters.map { .text($0) }, cached: true).int(0, 0))
        }
    }

    /// Returns SQL for a `Finding` as a number; null if the transaction is null.
    static func finding(_ transaction: String, _ commitTime: String) -> String {
        let time = "pg_xact_commit_timestamp(\(transaction))"
        return """
            CASE WHEN \(transaction) IS NULL THEN NULL WHEN age(\(transaction)) <= 0 THEN 1 WHEN \(time) IS NULL THEN 2
            WHEN \(HistoryAnchor.microseconds(time)) = \(commitTime) THEN 0 ELSE 1 END
            """
    }
}

extension History.Finding {
    init(_ number: Int64?) {
        self =
            switch number {
            case 0: .seen
            case 1: .unseen
            default: .forgotten
            }
    }
}

extension HistoryAnchor {
    /// Returns SQL that converts a time into microseconds since 1970.
    static func microseconds(_ time: String) -> String { "(extract(epoch FROM \(time)) * 1000000)::bigint" }

    /// The transaction's number and commit time, as texts.
    var parameters: [String] { [String(transaction), String(commitTime)] }
}
