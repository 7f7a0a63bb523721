package import SluiceCore
package import SluiceQuery

/// An instant in the life of one database.
package struct SnapshotPoint: Hashable, Sendable {
    /// The cluster that `transaction` belongs to.
    package var cluster: String
    /// A bound on ended transactions: all with lower numbers were over.
    package var transaction: UInt64
    /// A transaction whose presence in a history implies all of those; nil if none is known.
    package var witness: HistoryAnchor?

    package init(cluster: String, transaction: UInt64, witness: HistoryAnchor? = nil) {
        self.cluster = cluster
        self.transaction = transaction
        self.witness = witness
    }

    /// The distance above which transaction numbers are not compared. It stays well within the 31 bits after which a row's number wraps.
    private static let horizon: UInt64 = 1 << 30

    /// Returns a transaction number received from a client; nil for a number that no database assigns.
    package static func transaction(told number: UInt64) -> UInt64? { number <= UInt64(Int64.max) ? number : nil }

    /// Returns `true` if a transaction is near enough for the numbers in rows to order the two.
    package func isNear(_ other: UInt64) -> Bool { other <= transaction || other - transaction < Self.horizon }

    /// Returns `true` if a row's transaction number in a snapshot shows if the row was written since this point.
    package func isComparable(at start: SnapshotStart) -> Bool {
        cluster == start.cluster && isNear(start.snapshot.xmax)
    }
}

/// A query for the rows of one class in one bootstrap.
package struct SnapshotQuery: Sendable {
    package var type: ObjectType
    package var predicate: Predicate
    package var known: Known?
    /// The staged result of an earlier bootstrap with the same `predicate` and `known`, for the rows new to the reader.
    package var staged: Staged?
    /// A query for the keys of further rows, none of them matched by `predicate`.
    package var lost: Lost?
    /// The limit and order of the result; nil returns all rows. With a limit, `known` is nil.
    package var first: ObjectChoice?

    package struct Lost: Sendable {
        package var predicate: Predicate
        /// Restricts the keys to rows without a write since this point; nil returns all.
        package var before: SnapshotPoint?

        package init(predicate: Predicate, before: SnapshotPoint? = nil) {
            self.predicate = predicate
            self.before = before
        }
    }

    /// The rows of an earlier view, which the reader has as of a point or newer.
    package struct Known: Sendable {
        package var predicate: Predicate
        package var point: SnapshotPoint

        package init(predicate: Predicate, point: SnapshotPoint) {
            self.predicate = predicate
            self.point = point
        }
    }

    /// The rows that the reader has staged as of a point, in key order.
    package struct Staged: Sendable {
        package var point: SnapshotPoint
        /// The last staged key; nil if all rows are staged.
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
    /// The end of the WAL once the snapshot was taken. Everything that the snapshot sees precedes it.
    package var lsn: LSN
    package var cluster: String
    /// A transaction that had ended; nil if none is known.
    package var witness: HistoryAnchor?

    package init(snapshot: TransactionSnapshot, lsn: LSN, cluster: String, witness: HistoryAnchor? = nil) {
        self.witness = witness
        self.snapshot = snapshot
        self.lsn = lsn
        self.cluster = cluster
    }

    /// The point after which a reader of the snapshot needs changes.
    ///
    /// It may be lower than the snapshot's own `xmin`. A number above the witness's may belong to a transaction that failed. PostgreSQL
    /// may assign that number again after a restore of a backup that contains the witness.
    package var point: SnapshotPoint {
        var transaction = snapshot.xmin
        if let witness {
            let behind = Int64(Int32(bitPattern: UInt32(truncatingIfNeeded: transaction) &- witness.transaction)) - 1
            if behind > 0 { transaction &-= UInt64(behind) }
        }
        return SnapshotPoint(cluster: cluster, transaction: transaction, witness: witness)
    }
}

/// The read side of the authority: consistent snapshots of views.
package protocol SnapshotStore: Sendable {
    /// Opens one read-only snapshot and passes every query's rows on, in chunks of at most `Limits.bootstrapRows`.
    ///
    /// Calls `begin` first with the snapshot's identity. If it returns `false`, the snapshot is dropped and `read` returns nil. Then
    /// `expected` receives an estimate of the row count that costs no reading; nil requests none. The next chunk is read once the
    /// callback has returned.
    ///
    /// Rows that the reader knows or has staged, and that are unchanged since, may arrive as keys through `kept`. Each row of a query
    /// arrives exactly once, as a row or as a key. Rows that are `inOrder` follow all others of their query, in key order or all at once.
    /// Up to the last of them the reader has every row. The keys of the rows of `lost` arrive through `lost`.
    func read(
        _ queries: [SnapshotQuery],
        begin: @Sendable (SnapshotStart) async throws -> Bool,
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)?,
        rows: @Sendable (_ query: Int, _ buffer: RowBuffer, _ rows: [RowRef], _ inOrder: Bool) async throws -> Void,
        kept: @Sendable (_ query: Int, _ keys: [Value]) async throws -> Void,
        lost: @Sendable (_ query: Int, _ keys: [Value]) async throws -> Void
    ) async throws -> SnapshotStart?
    /// Returns the current rows and clocks of some objects. An object with neither is absent. Takes no locks.
    func stored(_ type: ObjectType, keys: [Value]) async throws -> [Value: StoredObject]
    /// Returns a text that identifies the source of a class's rows. If it changes, nothing read before is known any more.
    func source(of type: ObjectType) throws -> String
    /// Returns `true` if the current history of the database is known to contain a transaction.
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool
    /// Returns the current end of the WAL.
    func currentLSN() async throws -> LSN
    /// Returns the current end of the WAL and a point before it. Positions are comparable only within one cluster.
    func place() async throws -> (lsn: LSN, point: SnapshotPoint)
}

extension SnapshotStore {
    /// Reads queries without known, staged or lost rows and without an estimate.
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
