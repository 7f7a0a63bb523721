package import SluiceCore
package import SluiceQuery

/// Rows of one type for one bootstrap.
package struct SnapshotQuery: Sendable {
    package var type: ObjectType
    package var predicate: Predicate

    package init(type: ObjectType, predicate: Predicate) {
        self.type = type
        self.predicate = predicate
    }
}

package struct SnapshotStart: Sendable {
    package var snapshot: TransactionSnapshot
    /// The write-ahead log's end when the snapshot was there: everything it sees lies before.
    package var lsn: LSN

    package init(snapshot: TransactionSnapshot, lsn: LSN) {
        self.snapshot = snapshot
        self.lsn = lsn
    }
}

/// The authority's read side: consistent snapshots of views.
package protocol SnapshotStore: Sendable {
    /// Opens one read-only snapshot, hands `begin` its identity (false: the snapshot is given up and nil is returned), then
    /// every query's rows in chunks of at most `Limits.bootstrapRows`. The next chunk is read when the hand-over returns.
    func read(
        _ queries: [SnapshotQuery],
        begin: @Sendable (SnapshotStart) async throws -> Bool,
        rows: @Sendable (_ query: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotStart?
    /// The end of the write-ahead log now.
    func currentLSN() async throws -> LSN
}
