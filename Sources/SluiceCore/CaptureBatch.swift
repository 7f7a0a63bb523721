/// What a change of the log is.
package enum ChangeOperation: UInt8, Sendable {
    case insert = 1, update = 2, delete = 3
    /// All rows of the class are gone at once; there is neither key nor image.
    case truncate = 4
}

/// One row change read from the write-ahead log.
package struct CapturedChange: Sendable {
    package var position: Position
    /// Index into `Schema.types`.
    package var type: Int32
    package var operation: ChangeOperation
    /// The whole old row (REPLICA IDENTITY FULL); nil for an insert and a truncation.
    package var before: RowRef?
    /// The whole new row; nil for a delete and a truncation.
    package var after: RowRef?
    /// The write times of the change, bytes in the arena of the rows; empty for SQL.
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

/// A transaction, or the piece of a long one that fitted into a batch.
package struct CapturedTransaction: Sendable {
    package var xid: UInt32
    /// The LSN of the commit record: the transaction's place in the order.
    package var lsn: LSN
    /// Microseconds since 1970, UTC.
    package var commitTime: Int64
    package var origin: Origin?
    /// Its changes, as indices into `CaptureBatch.changes`.
    package var changes: Range<Int>
    /// Where the next transaction may begin: what is confirmed to PostgreSQL. Nil while more pieces follow.
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

extension Witness {
    package init(_ transaction: CapturedTransaction) {
        self.init(transaction: transaction.xid, commitTime: transaction.commitTime, lsn: transaction.lsn)
    }
}

/// News of a row of a synced table that does not fit its type: such a row is reported and never sent (EXT-3).
package struct UnfitRow: Sendable {
    package var position: Position
    package var type: Int32
    package var key: String
    /// Nil when the row did not fit before and does now, or is gone.
    package var reason: String?

    package init(position: Position, type: Int32, key: String, reason: String?) {
        self.position = position
        self.type = type
        self.key = key
        self.reason = reason
    }
}

/// What one read of the log gives: bounded by `Limits.captureBatch…`, reused from read to read.
package struct CaptureBatch: Sendable {
    package var transactions: [CapturedTransaction] = []
    package var changes: [CapturedChange] = []
    package var rows = RowBuffer()
    package var unfit: [UnfitRow] = []
    /// What was announced of the app's schema: rows that come later may have what it adds.
    package var schemas: [String] = []
    /// Changes that were made before this are missing: a table was not published, or its changes came without their old rows.
    package var gap: LSN = .zero
    /// Everything before this is in the batches up to this one; set also when nothing happened (a keep-alive).
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
