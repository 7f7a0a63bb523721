package import SluiceCore

/// The clocks of objects that other programs deleted (`sluice.row_clock`).
package struct ForeignDeletionMemory: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Turns the clocks of objects into those of a deletion, if they were last written before it. An object without clocks, which no
    /// device ever wrote, leaves none. `ClientHorizon` forgets them like those of any deletion. One look into an index for each key.
    /// - Parameters:
    ///   - keys: sorted as changesets lock objects; nil: all of the class.
    ///   - clocks: the encoded clocks of the deletion.
    ///   - lsn: of the deletion, below which they are forgotten.
    ///   - commitTime: of the deletion, microseconds since 1970: what `pg_xact_commit_timestamp` says of its transaction.
    package func remember(type: String, keys: [Value]?, clocks: [UInt8], lsn: LSN, commitTime: Int64) async throws {
        var parameters: [PostgresParameter] = [.text(type), .bytes(clocks), .text(lsn.description), .int(commitTime)]
        // A commit time that PostgreSQL has forgotten is an old one.
        let isOlder = """
            deleted_lsn IS NULL
            AND coalesce(pg_xact_commit_timestamp(xmin) < timestamptz 'epoch' + $4 * interval '1 microsecond', true)
            """
        var sql = "UPDATE sluice.row_clock SET clocks = $2, deleted_lsn = $3::pg_lsn WHERE type = $1 AND \(isOlder)"
        if let keys {
            parameters.append(.text(StoreText.array(keys.map { StoreText.key($0) })))
            sql = """
                WITH found AS MATERIALIZED (
                    SELECT stored.key FROM unnest($5::text[]) AS gone (key) CROSS JOIN LATERAL (
                        SELECT key FROM sluice.row_clock WHERE type = $1 AND row_clock.key = gone.key AND \(isOlder) FOR UPDATE) AS stored)
                \(sql) AND key = ANY (ARRAY(SELECT key FROM found))
                """
        }
        try await pool.perform { [sql, parameters] session in _ = try session.execute(sql, parameters) }
    }
}
