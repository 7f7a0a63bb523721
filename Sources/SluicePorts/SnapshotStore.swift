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

/// The identity of a snapshot.
package struct SnapshotStart: Hashable, Sendable {
    package var snapshot: TransactionSnapshot
    /// The end of the WAL once the snapshot was taken. Everything that the snapshot sees precedes it.
    package var lsn: LSN
    /// The server, timeline and database. Transaction numbers are comparable only if this value is equal.
    package var cluster: String
    /// The last committed transaction, which had ended; nil if none is known.
    package var witness: HistoryAnchor?
    /// The time at which the snapshot's transaction began, in microseconds since 1970 by the server's clock.
    package var begun: Int64
    /// The time of the first commit from before `begun` that the snapshot misses; nil for none. Its record is in the WAL, and its effects
    /// become visible an instant later, or after a synchronous standby has answered.
    package var missed: Int64?

    package init(
        snapshot: TransactionSnapshot, lsn: LSN, cluster: String, witness: HistoryAnchor? = nil, begun: Int64 = 0, missed: Int64? = nil
    ) {
        self.witness = witness
        (self.begun, self.missed) = (begun, missed)
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

/// Receives the content of one snapshot. The next chunk is read once the call has returned.
package protocol SnapshotSink: Sendable {
    /// Receives the identity of the snapshot, before everything else.
    /// - Returns: `false` to drop the snapshot.
    func begin(_ start: SnapshotStart) async throws -> Bool
    /// `true` if the sink needs an estimate of the row count.
    var needsEstimate: Bool { get }
    /// Receives the estimate before the first row. It costs no reading.
    func expect(_ rows: UInt64) async throws
    /// Receives a chunk of at most `Limits.bootstrapRows` rows.
    /// - Parameters:
    ///   - query: The index of the query.
    ///   - isInOrder: `true` if the rows follow all others of their query, in key order or all at once. Up to the last of them the
    ///     reader has every row.
    func take(_ rows: [RowRef], of buffer: RowBuffer, query: Int, isInOrder: Bool) async throws
    /// Receives keys of rows that the reader knows or has staged and that are unchanged since.
    func take(kept keys: [Value], query: Int) async throws
    /// Receives keys of the rows of `SnapshotQuery.lost`.
    func take(lost keys: [Value], query: Int) async throws
}

extension SnapshotSink {
    package var needsEstimate: Bool { false }
    package func expect(_ rows: UInt64) async throws {}
    package func take(kept keys: [Value], query: Int) async throws {}
    package func take(lost keys: [Value], query: Int) async throws {}
}

/// The read side of the authority: consistent snapshots of views.
package protocol SnapshotStore: Sendable {
    /// Opens one read-only snapshot and passes every query's rows to `sink`. Each row of a query arrives exactly once, as a row or as a
    /// key.
    /// - Returns: The identity of the snapshot; nil if the sink dropped it.
    func read(_ queries: [SnapshotQuery], into sink: some SnapshotSink) async throws -> SnapshotStart?
    /// Returns the current rows and clocks of some objects. An object with neither is absent. Takes no locks.
    /// - Returns: The objects, and the identity of the snapshot. It may miss a transaction of which a reader of the log has the change.
    func stored(_ type: ObjectType, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart)
    /// Returns a text that identifies the source of a class's rows. If it changes, nothing read before is known any more.
    func source(of type: ObjectType) throws -> String
    /// Returns `true` if the current history of the database is known to contain a transaction.
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool
    /// Returns the current end of the WAL.
    func currentLSN() async throws -> LSN
    /// Returns the current end of the WAL and a point before it. Positions are comparable only within one cluster.
    func place() async throws -> (lsn: LSN, point: SnapshotPoint)
}
