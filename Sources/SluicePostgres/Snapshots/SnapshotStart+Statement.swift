import SluiceCore
import SluicePorts

extension SnapshotStart {
    /// SQL of a snapshot with its identity.
    ///
    /// The snapshot is taken when the statement begins. The LSN and the last commit are read while it runs, that is, later. So is
    /// the age of a transaction number: it counts the numbers assigned since, which include all that the snapshot does not see.
    private static let fields = "s, pg_current_wal_insert_lsn(), \(cluster), c.xid, \(HistoryAnchor.microseconds("c.timestamp"))"
    private static let source = "pg_current_snapshot() AS s, pg_last_committed_xact() AS c"

    /// SQL that names the server, the timeline and the database.
    private static let cluster = """
        (SELECT system_identifier FROM pg_control_system()) || '-' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
        || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
        """

    /// The maximum number of transaction numbers above a snapshot's that are checked: running transactions with their
    /// subtransactions.
    private static let numbersAbove = 1_024

    /// Creates the identity from the result of `statement` or `place`.
    ///
    /// The time of a commit is known before its record is in the WAL, and so before its effects are visible.
    init(_ result: PostgresResult) throws {
        guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }),
            let cluster = result[0, 2]
        else {
            throw SluiceError(.postgresStatement, "PostgreSQL did not return its snapshot.")
        }
        var witness: HistoryAnchor?
        if let transaction = result.int(0, 3), let time = result.int(0, 4) {
            witness = HistoryAnchor(transaction: UInt32(truncatingIfNeeded: transaction), commitTime: time)
        }
        self.init(
            snapshot: snapshot, lsn: lsn, cluster: cluster, witness: witness, begun: result.int(0, 5) ?? 0, missed: result.int(0, 6))
    }

    /// SQL of the identity of a snapshot taken now, without the check for commits that it does not see.
    static let place = "SELECT \(fields), NULL, NULL FROM \(source)"

    /// The statement that takes a snapshot and finds the first commit that it does not see.
    ///
    /// The check covers the running transactions of the snapshot and the numbers above it, if they have a commit time of before
    /// this transaction.
    static let statement = PostgresStatement(
        """
        SELECT \(fields), \(HistoryAnchor.microseconds("transaction_timestamp()")),
            (
                SELECT \(HistoryAnchor.microseconds("min(pg_xact_commit_timestamp(number))"))
                FROM (
                    SELECT pg_snapshot_xip(s)::xid AS number
                    UNION ALL
                    SELECT above::text::xid
                    FROM generate_series(0, least(age(pg_snapshot_xmax(s)::xid), \(numbersAbove)) - 1) AS i,
                        LATERAL (SELECT (pg_snapshot_xmax(s)::text::bigint + i) & 4294967295) AS n (above)
                    WHERE above > 2
                ) AS unseen
                WHERE pg_xact_commit_timestamp(number) <= transaction_timestamp())
        FROM \(source)
        """)
}
