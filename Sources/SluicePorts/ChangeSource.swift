package import SluiceCore

/// The PostgreSQL WAL, read by the one gateway that holds the replication slot.
package protocol ChangeSource: Sendable {
    /// Acquires the slot and decodes rows by `schema`.
    /// - Returns: the LSN from which every change arrives: the confirmed one, unless the slot has been created anew.
    /// - Throws: `slotBusy` while another gateway holds the slot.
    func open(_ schema: Schema) async throws -> LSN
    /// Fills `batch` with the next changes. Waits at most `milliseconds`.
    /// If no change arrives, the batch is empty with `reached` set. If the batch is outdated, `open` must follow.
    /// `Limits.captureBatchChanges` and `captureBatchBytes` bound a batch.
    func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch
    /// Confirms that everything before `lsn` is durable elsewhere, so that PostgreSQL may discard that WAL.
    func confirm(_ lsn: LSN) async throws
    /// Returns `true` if the history of the database contains the transaction; nil if that history no longer reaches so far back.
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool?
    /// Returns a bound on the times of all clients' writes that are committed now: no time is later. Zero if there are none.
    func latestWriteTime() async throws -> HybridTime
    func close() async
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
    /// The rows that a change source has yet to complete; empty in a batch that it returns.
    package var uncomputed: [UncomputedRow] = []
    /// The app's schemas announced in the WAL. Later rows may have the properties that they add.
    package var schemas: [String] = []
    /// Changes before this position are missing, because a table was not published or its changes lacked the old rows.
    package var gap: LSN = .zero
    /// `true` if the tables have changed since the source was opened. The batch is empty, and its changes arrive after the next `open`.
    package var isOutdated = false
    /// Everything before this position is in the batches up to this one. A keep-alive without changes also sets it.
    package var reached: LSN = .zero

    package init() {}

    package var isEmpty: Bool { transactions.isEmpty && unfit.isEmpty && schemas.isEmpty }

    package mutating func removeAll() {
        transactions.removeAll(keepingCapacity: true)
        changes.removeAll(keepingCapacity: true)
        rows.removeAll()
        unfit.removeAll(keepingCapacity: true)
        uncomputed.removeAll(keepingCapacity: true)
        schemas.removeAll(keepingCapacity: true)
        gap = .zero
        isOutdated = false
    }
}

/// Writes WAL heartbeats: messages without content that move the log.
package protocol WALHeartbeatSender: Sendable {
    /// Returns once the heartbeat is written. The change source delivers it after everything committed before.
    func mark() async throws
}
