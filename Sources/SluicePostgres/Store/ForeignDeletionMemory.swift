package import SluiceCore
import SluiceValues

/// The clocks of objects that other programs deleted (`sluice.row_clock`).
///
/// They become the clocks of a deletion if they were last written before it. An object that no device ever wrote has no clocks and
/// leaves none. `ClientHorizon` deletes them like those of any deletion.
package struct ForeignDeletionMemory: Sendable {
    package struct Entry: Sendable {
        package var type: String
        /// The key of the deleted object; nil for all objects of the class.
        package var key: Value?
        /// The encoded clocks of the deletion.
        package var clocks: [UInt8]
        /// The position of the deletion. Its clocks are deleted when the horizon has passed it.
        package var lsn: LSN
        /// The commit time of the deleting transaction (`pg_xact_commit_timestamp`), in microseconds since 1970.
        package var commitTime: Int64

        package init(type: String, key: Value?, clocks: [UInt8], lsn: LSN, commitTime: Int64) {
            (self.type, self.key, self.clocks, self.lsn, self.commitTime) = (type, key, clocks, lsn, commitTime)
        }
    }

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Records external deletes: one statement with an index lookup per object, and one statement per class.
    ///
    /// - Parameter entries: Objects, each once, in the order in which changesets lock objects; then the classes.
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

    /// Returns the SQL condition that clocks are of a live object and were written before a time. A commit time that PostgreSQL no
    /// longer keeps counts as old.
    private static func isOlder(than time: String) -> String {
        """
        deleted_lsn IS NULL
        AND coalesce(pg_xact_commit_timestamp(row_clock.xmin) < timestamptz 'epoch' + \(time) * interval '1 microsecond', true)
        """
    }

    /// The statement that locks the clocks in the order of the entries and then checks them again. Another transaction may have
    /// written them while the statement waited.
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
