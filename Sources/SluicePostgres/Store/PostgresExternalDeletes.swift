import SluiceCore
import SluiceMerge
package import SluicePorts
import SluiceValues

/// The clocks of objects that other programs deleted (`sluice.row_clock`).
///
/// They become the clocks of a deletion if they were last written before it. An object that no device ever wrote has no clocks and
/// leaves none. `ClientHorizon` deletes them like those of any deletion.
package struct PostgresExternalDeletes: ExternalDeleteStore {
    private struct Entry: Sendable {
        var delete: ExternalDelete
        /// The text of the object's key; empty for a class.
        var key: String
        /// The clocks of the deletion.
        var clocks: ObjectClocks
        /// The position of the deletion. Its clocks are deleted when the horizon has passed it.
        var lsn: LSN

        init(_ delete: ExternalDelete) {
            self.delete = delete
            key = delete.key.map { StoreText.key($0) } ?? ""
            // One below the commit: a client that has applied the commit has seen the deletion.
            lsn = LSN(rawValue: max(delete.lsn.rawValue, 1) - 1)
            let stamp = WriteStamp(time: HybridTime(milliseconds: delete.commitTime / 1_000), client: .server)
            clocks = ObjectClocks(deletion: Deletion(stamp: stamp, lsn: lsn), isDeleted: true)
        }
    }

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Records external deletes: one statement with an index lookup per object, and one statement per class.
    package func remember(_ deletions: [ExternalDelete]) async throws {
        let objects = deletions.filter { $0.key != nil }.map { Entry($0) }
        let classes = deletions.filter { $0.key == nil }.map { Entry($0) }
        try await pool.perform { session in
            if !objects.isEmpty {
                try session.execute(
                    Self.markObjects,
                    [
                        .text(StoreText.array(objects.map(\.delete.type))), .text(StoreText.array(objects.map(\.key))),
                        .text(StoreText.array(objects.map { "\\x" + Hex.encode($0.clocks.encoded) })),
                        .text(StoreText.array(objects.map(\.lsn.description))),
                        .text(StoreText.array(objects.map { String($0.delete.commitTime) })),
                    ])
            }
            for entry in classes {
                try session.execute(
                    Self.markClass,
                    [
                        .text(entry.delete.type), .bytes(entry.clocks.encoded), .text(entry.lsn.description),
                        .int(entry.delete.commitTime),
                    ])
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
