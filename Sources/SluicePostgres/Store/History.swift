package import SluiceCore

/// What the database knows of transactions that somebody has seen.
package enum History {
    /// What became of a witness.
    package enum Finding: Hashable, Sendable {
        case seen
        /// The database never had it: its number is nobody's yet, or somebody else's.
        case unseen
        /// It is older than the times of commit that are kept, or its number belongs to a transaction that failed.
        case forgotten
    }

    package static func find(_ witness: Witness, _ pool: PostgresPool) async throws -> Finding {
        try await pool.perform { session in
            let sql = "SELECT \(finding("$1::text::xid", "$2::bigint"))"
            return Finding(try session.query(sql, witness.parameters.map { .text($0) }, cached: true).int(0, 0))
        }
    }

    /// SQL for a `Finding`, as a number; null when the number is null.
    static func finding(_ transaction: String, _ commitTime: String) -> String {
        let time = "pg_xact_commit_timestamp(\(transaction))"
        return """
            CASE WHEN \(transaction) IS NULL THEN NULL WHEN age(\(transaction)) <= 0 THEN 1 WHEN \(time) IS NULL THEN 2
            WHEN \(Witness.microseconds(time)) = \(commitTime) THEN 0 ELSE 1 END
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

extension Witness {
    /// SQL of a time as microseconds since 1970.
    static func microseconds(_ time: String) -> String { "(extract(epoch FROM \(time)) * 1000000)::bigint" }

    /// Its number and its time of commit, as texts.
    var parameters: [String] { [String(transaction), String(commitTime)] }
}
