import SluiceCore
import SluicePorts

/// A batch of asymmetric objects that is not acknowledged yet.
struct WaitingBatch: Sendable {
    var number: UInt64
    var objects: [ObjectChange]
    /// The changeset of each object, if a reader in this process sent the batch. Rejections are then compensating writes. Empty otherwise.
    var changesets: [UInt64] = []
    /// The rejected objects, once the others are durable; nil before.
    /// Completed steps are not repeated if a later step fails. Otherwise the log would receive another copy, and other rules could reject
    /// stored objects.
    var refused: [WriteRejection]?
    /// `true` once the rejected objects are stored.
    var isRefusalKept = false
}

/// The unacknowledged batches of a session, in order. One taker handles them one at a time.
struct IngestQueue: Sendable {
    private(set) var batches: [WaitingBatch] = []
    /// `true` while a taker handles batches.
    private(set) var isTaking = false

    /// `true` if the client has sent as many batches as the protocol's window holds.
    var isFull: Bool { batches.count >= Limits.ingestWindow }

    /// Adds a batch.
    /// - Returns: `true` if a taker must start.
    mutating func add(_ batch: WaitingBatch) -> Bool {
        batches.append(batch)
        defer { isTaking = true }
        return !isTaking
    }

    /// Removes the first batch, which is acknowledged.
    mutating func acknowledged() { if !batches.isEmpty { batches.removeFirst() } }

    /// Records the end of the taker and drops what it leaves.
    mutating func stopTaking() {
        isTaking = false
        batches = []
    }
}
