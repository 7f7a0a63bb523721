package import SluiceCore
package import SluiceQuery

/// An instant in the life of one database.
package struct SnapshotPoint: Hashable, Sendable {
    /// Where `transaction` is a number of.
    package var cluster: String
    /// All transactions with lower numbers were over.
    package var transaction: UInt64
    /// What is in a history of the database has all of them; nil when none is known.
    package var witness: Witness?

    package init(cluster: String, transaction: UInt64, witness: Witness? = nil) {
        self.cluster = cluster
        self.transaction = transaction
        self.witness = witness
    }

    /// Numbers farther apart than this are not compared, to stay well within the 31 bits of a row's: those come round again.
    private static let horizon: UInt64 = 1 << 30

    /// A transaction as a client tells it; nil for a number that no database gives out.
    static func transaction(told number: UInt64) -> UInt64? { number <= UInt64(Int64.max) ? number : nil }

    /// Whether a transaction is so near that the numbers in rows tell which of the two was first.
    func isNear(_ other: UInt64) -> Bool { other <= transaction || other - transaction < Self.horizon }

    /// Whether the age of a row in a snapshot tells if it has been written since this point.
    package func isComparable(at start: SnapshotStart) -> Bool {
        cluster == start.cluster && isNear(start.snapshot.xmax)
    }
}

/// Rows of one type for one bootstrap.
package struct SnapshotQuery: Sendable {
    package var type: ObjectType
    package var predicate: Predicate
    package var known: Known?
    /// What an earlier bootstrap, with the same `predicate` and `known`, had come to of the rows that are new to the reader.
    package var staged: Staged?
    /// Rows that are not among those of `predicate` and whose keys are asked for too.
    package var lost: Lost?
    /// The first so many, in an order; with it nothing is known. Nil: all.
    package var first: ObjectChoice?

    package struct Lost: Sendable {
        package var predicate: Predicate
        /// Of those the rows that nobody has written since; nil: all.
        package var before: SnapshotPoint?

        package init(predicate: Predicate, before: SnapshotPoint? = nil) {
            self.predicate = predicate
            self.before = before
        }
    }

    /// The rows of an earlier view that the reader has as a point saw them, or newer.
    package struct Known: Sendable {
        package var predicate: Predicate
        package var point: SnapshotPoint

        package init(predicate: Predicate, point: SnapshotPoint) {
            self.predicate = predicate
            self.point = point
        }
    }

    /// The rows that the reader has put aside as a point saw them, in the order of their keys.
    package struct Staged: Sendable {
        package var point: SnapshotPoint
        /// Nil: all.
        package var through: Value?

        package init(point: SnapshotPoint, through: Value?) {
            self.point = point
            self.through = through
        }
    }

    package init(
        type: ObjectType, predicate: Predicate, known: Known? = nil, staged: Staged? = nil, lost: Lost? = nil, first: ObjectChoice? = nil
    ) {
        self.type = type
        self.predicate = predicate
        self.known = known
        self.staged = staged
        self.lost = lost
        self.first = first
    }
}

package struct SnapshotStart: Sendable {
    package var snapshot: TransactionSnapshot
    /// The write-ahead log's end when the snapshot was there: everything it sees lies before.
    package var lsn: LSN
    package var cluster: String
    /// A transaction that was over; nil when none is known.
    package var witness: Witness?

    package init(snapshot: TransactionSnapshot, lsn: LSN, cluster: String, witness: Witness? = nil) {
        self.witness = witness
        self.snapshot = snapshot
        self.lsn = lsn
        self.cluster = cluster
    }

    /// The point from which on a reader of the snapshot needs news.
    ///
    /// Not always as far as the snapshot says: a number above the witness's own may be that of a transaction that failed, and be given
    /// out again after a backup was restored that has the witness.
    package var point: SnapshotPoint {
        var transaction = snapshot.xmin
        if let witness {
            let behind = Int64(Int32(bitPattern: UInt32(truncatingIfNeeded: transaction) &- witness.transaction)) - 1
            if behind > 0 { transaction &-= UInt64(behind) }
        }
        return SnapshotPoint(cluster: cluster, transaction: transaction, witness: witness)
    }
}

/// The authority's read side: consistent snapshots of views.
package protocol SnapshotStore: Sendable {
    /// Opens one read-only snapshot, hands `begin` its identity (false: the snapshot is given up and nil is returned), then
    /// every query's rows in chunks of at most `Limits.bootstrapRows`. The next chunk is read when the hand-over returns.
    /// `expected` is told before the first how many there may be in all, an estimate that costs no reading; nil asks for none.
    ///
    /// Of what a query's reader knows, or has put aside, and nobody has written since, only the keys may come, by `kept`. Each row of a
    /// query comes one way or the other, once. Rows that are `inOrder` come after all others of their query, in the order of
    /// their keys, or all at once: up to the last of them the reader has all. The keys of the rows of `lost` come by `lost`.
    func read(
        _ queries: [SnapshotQuery],
        begin: @Sendable (SnapshotStart) async throws -> Bool,
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)?,
        rows: @Sendable (_ query: Int, _ buffer: RowBuffer, _ rows: [RowRef], _ inOrder: Bool) async throws -> Void,
        kept: @Sendable (_ query: Int, _ keys: [Value]) async throws -> Void,
        lost: @Sendable (_ query: Int, _ keys: [Value]) async throws -> Void
    ) async throws -> SnapshotStart?
    /// Returns what is stored of some objects now, their clocks included; an object with neither row nor clocks is missing. Locks nothing.
    func stored(_ type: ObjectType, keys: [Value]) async throws -> [Value: StoredObject]
    /// Where a type's rows are read from, as text: when it changes, nothing of what was read before is known.
    func source(of type: ObjectType) throws -> String
    /// Whether the database is known to have a transaction, in its history as it is now.
    func hasSeen(_ witness: Witness) async throws -> Bool
    /// The end of the write-ahead log now.
    func currentLSN() async throws -> LSN
    /// The same, and a point that lies before it: positions mean the same only within one cluster.
    func place() async throws -> (lsn: LSN, point: SnapshotPoint)
}

extension SnapshotStore {
    /// As above, of queries of which nothing is known or lost, without an estimate.
    package func read(
        _ queries: [SnapshotQuery],
        begin: @Sendable (SnapshotStart) async throws -> Bool,
        rows: @Sendable (_ query: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotStart? {
        try await read(
            queries, begin: begin, expected: nil, rows: { query, buffer, refs, _ in try await rows(query, buffer, refs) },
            kept: { _, _ in }, lost: { _, _ in })
    }
}
