package import SluiceCore

/// The clocks of objects that other programs deleted (`sluice.row_clock`).
///
/// They become those of a deletion if they were last written before it. An object without clocks, which no device ever wrote, leaves
/// none. `ClientHorizon` forgets them like those of any deletion.
package struct ForeignDeletionMemory: Sendable {
    package struct Entry: Sendable {
        package var type: String
        /// Nil: all of the class.
        package var key: Value?
        /// The encoded clocks of the deletion.
        package var clocks: [UInt8]
        /// Below which they are forgotten.
        package var lsn: LSN
        /// Microseconds since 1970: what `pg_xact_commit_timestamp` says of the transaction.
        package var commitTime: Int64

        package init(type: String, key: Value?, clocks: [UInt8], lsn: LSN, commitTime: Int64) {
            (self.type, self.key, self.clocks, self.lsn, self.commitTime) = (type, key, clocks, lsn, commitTime)
        }
    }

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// One statement for all objects, with a look into an index for each, and one for each class.
    /// - Parameter entries: each object once, in the order in which changesets lock objects; then the classes.
    package func remember(_ entries: [Entry]) async throws {
        let objects = entries.compactMap { entry in entry.key.map { (StoreText.key($0), entry) } }
        let classes = entries.filter { $0.key == nil }
        try await pool.perform { session in
            if !objects.isEmpty {
                try session.execute(
                    Self.markObjects,
                    [
                        .text(StoreText.array(objects.map(\.1.type))), .text(StoreText.array(objects.map(\.0))),
                        .text(StoreText.array(objects.map { "\\x" + Hex.encode($0.1.clocks) })),
                        .text(StoreText.array(objects.map(\.1.lsn.description))),
                        .text(StoreText.array(objects.map { String($0.1.commitTime) })),
                    ])
            }
            for entry in classes {
                try session.execute(
                    Self.markClass, [.text(entry.type), .bytes(entry.clocks), .text(entry.lsn.description), .int(entry.commitTime)])
            }
        }
    }

    /// Whether a line of clocks is of before a time. A commit time that PostgreSQL has forgotten is an old one.
    private static func isOlder(than time: String) -> String {
        """
        deleted_lsn IS NULL
        AND coalesce(pg_xact_commit_timestamp(row_clock.xmin) < timestamptz 'epoch' + \(time) * interval '1 microsecond', true)
        """
    }

    /// What is found is locked first, in its order; what another has written meanwhile is looked at again.
    private static let markObjects = """
        WITH found AS MATERIALIZED (
            SELECT gone.* FROM unnest($1::text[], $2::text[], $3::bytea[], $4::pg_lsn[], $5::bigint[]) AS gone (type, key, clocks, lsn, time)
            CROSS JOIN LATERAL (
                SELECT FROM sluice.row_clock
                WHERE row_clock.type = gone.type AND row_clock.key = gone.key AND \(isOlder(than: "gone.time")) FOR UPDATE) AS stored)
        UPDATE sluice.row_clock SET clocks = found.clocks, deleted_lsn = found.lsn FROM found
        WHERE row_clock.type = found.type AND row_clock.key = found.key AND \(isOlder(than: "found.time"))
        """

    private static let markClass =
        "UPDATE sluice.row_clock SET clocks = $2, deleted_lsn = $3::pg_lsn WHERE type = $1 AND \(isOlder(than: "$4"))"
}
