package import SluiceCore

/// The PostgreSQL WAL, read by the one gateway that holds the replication slot.
package protocol ChangeSource: Sendable {
    /// Acquires the slot and decodes rows by `schema`.
    /// - Returns: the LSN from which every change arrives: the confirmed one, unless the slot has been created anew.
    /// - Throws: `slotBusy` while another gateway holds the slot.
    func open(_ schema: Schema) async throws -> LSN
    /// Fills `batch` with the next changes. Waits at most `milliseconds`.
    /// If no change arrives, the batch is empty with `reached` set. `Limits.captureBatchChanges` and `captureBatchBytes` bound a batch.
    func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch
    /// Confirms that everything before `lsn` is durable elsewhere, so that PostgreSQL may discard that WAL.
    func confirm(_ lsn: LSN) async throws
    /// Returns `true` if the history of the database contains the transaction; nil if that history no longer reaches so far back.
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool?
    /// Returns a bound on the times of all clients' writes that are committed now: no time is later. Zero if there are none.
    func latestWriteTime() async throws -> HybridTime
    func close() async
}
