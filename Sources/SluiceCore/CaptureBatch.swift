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

/// A report about a row of a synced table that does not fit its class. Such a row is quarantined and never sent.
package struct UnfitRow: Sendable {
    package var position: Position
    package var type: Int32
    package var key: String
    /// Nil if a row that did not fit now fits or is deleted.
    package var reason: String?

    package init(position: Position, type: Int32, key: String, reason: String?) {
        self.position = position
        self.type = type
        self.key = key
        self.reason = reason
    }
}

/// The result of one read of the WAL. It is bounded by `Limits.captureBatch…` and reused from read to read.
package struct CaptureBatch: Sendable {
    package var transactions: [CapturedTransaction] = []
    package var changes: [CapturedChange] = []
    package var rows = RowBuffer()
    package var unfit: [UnfitRow] = []
    /// The app's schemas announced in the WAL. Later rows may have the properties that they add.
    package var schemas: [String] = []
    /// Changes before this position are missing, because a table was not published or its changes lacked the old rows.
    package var gap: LSN = .zero
    /// Everything before this position is in the batches up to this one. A keep-alive without changes also sets it.
    package var reached: LSN = .zero

    package init() {}

    package var isEmpty: Bool { transactions.isEmpty && unfit.isEmpty && schemas.isEmpty }

    package mutating func removeAll() {
        transactions.removeAll(keepingCapacity: true)
        changes.removeAll(keepingCapacity: true)
        rows.removeAll()
        unfit.removeAll(keepingCapacity: true)
        schemas.removeAll(keepingCapacity: true)
        gap = .zero
    }
}
