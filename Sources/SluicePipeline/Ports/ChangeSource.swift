package import SluiceCore

/// The write-ahead log, read by the one gateway that holds the replication slot.
package protocol ChangeSource: Sendable {
    /// Takes the slot, to read rows as the schema has them. Throws `slotBusy` while another gateway holds it.
    /// - Returns: from where on everything comes: what was confirmed last, unless the slot has been made anew.
    func open(_ schema: Schema) async throws -> LSN
    /// Fills `batch` with what came next, waiting at most `milliseconds`; the batch comes back empty with `reached` set
    /// when nothing did. Batches are bounded by `Limits.captureBatchChanges` and `captureBatchBytes`.
    func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch
    /// Everything before `lsn` is safe elsewhere: PostgreSQL may forget it.
    func confirm(_ lsn: LSN) async throws
    /// Whether a transaction is in the history of the database as it is now; nil when it does not remember that far.
    func hasSeen(_ witness: Witness) async throws -> Bool?
    func close() async
}
