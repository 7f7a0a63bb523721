package import SluiceCore

/// Rows that do not fit their type (`sluice.quarantine`, EXT-3): the last reason of each, for people to read.
package struct QuarantineStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    package func record(_ rows: [UnfitRow], types: [String]) async throws {
        guard !rows.isEmpty else { return }
        try await pool.transact { session in
            for row in rows where types.indices.contains(Int(row.type)) {
                try session.execute(
                    """
                    INSERT INTO sluice.quarantine (type, key, reason, lsn) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (type, key) DO UPDATE SET reason = excluded.reason, lsn = excluded.lsn, at = now()
                    """,
                    [
                        .text(types[Int(row.type)]), .text(StoreText.printable(row.key)), .text(StoreText.printable(row.reason)),
                        .text(row.position.lsn.description),
                    ], cached: true)
            }
        }
    }

    /// The newest first, at most `limit`.
    package func list(limit: Int = 100) async throws -> [(type: String, key: String, reason: String)] {
        try await pool.perform { session in
            let result = try session.query("SELECT type, key, reason FROM sluice.quarantine ORDER BY at DESC LIMIT $1", [.int(limit)])
            return (0..<result.count).map { (result[$0, 0] ?? "", result[$0, 1] ?? "", result[$0, 2] ?? "") }
        }
    }
}
