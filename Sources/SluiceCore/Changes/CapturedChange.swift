/// The kind of a change in the WAL.
package enum ChangeOperation: UInt8, Sendable {
    case insert = 1, update = 2, delete = 3
    /// Removes all rows of the class at once. It has neither key nor image.
    case truncate = 4
}

/// One row change read from the WAL.
package struct CapturedChange: Sendable {
    package var position: Position
    /// The index in `Schema.types`.
    package var type: Int32
    package var operation: ChangeOperation
    /// The whole old row (REPLICA IDENTITY FULL). Nil for an insert and a truncation.
    package var before: RowRef?
    /// The whole new row. Nil for a delete and a truncation.
    package var after: RowRef?
    /// The encoded write times of the change, as a range of the rows' arena. Empty for SQL writes.
    package var times: Range<UInt32>

    package init(
        position: Position, type: Int32, operation: ChangeOperation, before: RowRef?, after: RowRef?, times: Range<UInt32> = 0..<0
    ) {
        self.position = position
        self.type = type
        self.operation = operation
        self.before = before
        self.after = after
        self.times = times
    }
}

/// A transaction, or the part of a long one that fits into a batch.
package struct CapturedTransaction: Sendable {
    package var xid: UInt32
    /// The LSN of the commit record: the transaction's place in the order.
    package var lsn: LSN
    /// Microseconds since 1970, UTC.
    package var commitTime: Int64
    /// The client changeset of the transaction. Nil for SQL writes.
    package var origin: Origin?
    /// The transaction's changes, as indices into `CaptureBatch.changes`.
    package var changes: Range<Int>
    /// The position after the transaction, to confirm to PostgreSQL. Nil while more parts follow.
    package var end: LSN?

    package init(xid: UInt32, lsn: LSN, commitTime: Int64, origin: Origin?, changes: Range<Int>, end: LSN?) {
        self.xid = xid
        self.lsn = lsn
        self.commitTime = commitTime
        self.origin = origin
        self.changes = changes
        self.end = end
    }
}

extension HistoryAnchor {
    package init(_ transaction: CapturedTransaction) {
        self.init(transaction: transaction.xid, commitTime: transaction.commitTime, lsn: transaction.lsn)
    }
}
