package import SluiceCore

/// Which snapshot it is.
package struct SnapshotIdentity: Hashable, Sendable {
    package var snapshot: TransactionSnapshot
    /// The end of the write-ahead log when the snapshot was there: all that it sees lies before.
    package var lsn: LSN
    /// Database, server and timeline: transaction numbers mean the same only where these are the same.
    package var cluster: String
    /// A transaction that was over; nil when the server does not know any.
    package var witness: Witness?
}

extension SnapshotIdentity {
    /// A snapshot with its identity, as SQL. The snapshot is taken when the statement begins, the LSN and the last commit are read while it
    /// runs: after it. So is the age of a number, which says how many have been given out since; all that the snapshot has not seen are
    /// among them.
    private static let fields = "s, pg_current_wal_insert_lsn(), \(cluster), c.xid, \(Witness.microseconds("c.timestamp"))"
    private static let source = "pg_current_snapshot() AS s, pg_last_committed_xact() AS c"

    /// SQL of the database's, the server's and the timeline's name.
    private static let cluster = """
        (SELECT system_identifier FROM pg_control_system()) || '-' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
        || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
        """

    /// How many numbers above a snapshot's are looked at, at most: transactions that ran and had not ended, with their subtransactions.
    private static let numbersAbove = 1_024

    /// - Returns: nil when the snapshot does not see a transaction that was committed before this one began. Its commit record is
    ///   in the log, and its effects become visible an instant later, or when a synchronous standby has answered: but its time of
    ///   commit is known before either.
    init?(_ result: PostgresResult) throws {
        guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }),
            let cluster = result[0, 2]
        else {
            throw SluiceError(.postgresStatement, "PostgreSQL did not tell its snapshot.")
        }
        if result[0, 5] == "t" { return nil }
        var witness: Witness?
        if let transaction = result.int(0, 3), let time = result.int(0, 4) {
            witness = Witness(transaction: UInt32(truncatingIfNeeded: transaction), commitTime: time)
        }
        self.init(snapshot: snapshot, lsn: lsn, cluster: cluster, witness: witness)
    }

    /// The identity of a snapshot of now, whatever it does not see.
    static let place = "SELECT \(fields), false FROM \(source)"

    static let statement = PostgresStatement(
        """
        SELECT \(fields),
            EXISTS (
                SELECT FROM (
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
