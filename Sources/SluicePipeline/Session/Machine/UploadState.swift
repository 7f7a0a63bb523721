import SluiceCore

/// A committed changeset that is acknowledged once it survives a crash.
struct Acknowledgement: Sendable {
    var changeset: UInt64
    /// A position at or after its commit.
    var lsn: LSN
    /// `true` if this session has just committed it, so that its commit will pass the log.
    var isCommit: Bool
    /// The encoded compensating write; nil if no write was rejected.
    var compensation: [UInt8]?
    /// Deleted objects, for which its writes have no effect.
    var futile: [ObjectKey] = []
}

/// The numbers of a client's changesets.
package enum ChangesetNumbering: Sendable {
    /// Without gaps: a missing number shows that the database was restored from an older backup.
    case contiguous
    /// Increasing, with gaps.
    case increasing
}

/// The uploads of a session. A changeset is taken, committed, made durable by a flush, and acknowledged, in the order of the numbers.
///
/// A flush covers all changesets committed before it. Changesets committed during a flush wait for the next one.
struct UploadState: Sendable {
    /// The number of acknowledgements of a session that may wait for the disk before uploads block.
    static let most = 1_024

    let numbering: ChangesetNumbering

    /// The number of the last changeset that was taken.
    private var taken: UInt64 = 0
    /// The number up to which the replica's changesets are committed.
    private(set) var committed: UInt64 = 0
    /// The first committed changeset with a compensating write that was not sent yet.
    private var firstUntold: UInt64?
    /// The committed changesets that no flush has covered yet, and the resends.
    private var unacknowledged: [Acknowledgement] = []
    /// `true` while flushes run.
    private(set) var isFlushing = false

    init(_ numbering: ChangesetNumbering = .contiguous) { self.numbering = numbering }

    /// The number up to which the client may drop its changesets: they are committed, and their compensating writes were sent.
    var told: UInt64 { firstUntold.map { $0 - 1 } ?? committed }

    /// `true` if the client's next messages must wait for the disk.
    var isFull: Bool { unacknowledged.count >= Self.most }

    /// Sets the number of the last changeset that took effect in earlier sessions.
    mutating func begin(changeset: UInt64) {
        taken = changeset
        committed = changeset
    }

    /// Returns `true` if a changeset is new. A resend is identified by its number.
    /// - Throws: `badClientFile` if numbers are missing. The client has received their acknowledgements, so the database was restored
    ///   from an older backup.
    mutating func take(changeset number: UInt64) throws(SluiceError) -> Bool {
        guard number > taken else { return false }
        guard numbering == .increasing || number == taken + 1 else {
            throw SluiceError(
                .badClientFile, "Changeset \(number) arrived after \(taken): \(number - taken - 1) are not in the database.")
        }
        taken = number
        return true
    }

    /// Adds a committed changeset or a resend.
    /// - Returns: `true` if flushes must start.
    mutating func add(_ next: Acknowledgement) -> Bool {
        if next.isCommit {
            committed = next.changeset
            // In the same step: `told` must never include a changeset with an unsent compensating write.
            if next.compensation != nil, firstUntold == nil { firstUntold = next.changeset }
        }
        unacknowledged.append(next)
        defer { isFlushing = true }
        return !isFlushing
    }

    /// Returns the changesets that the next flush covers; empty if none is left. Flushes end then.
    mutating func nextFlush() -> [Acknowledgement] {
        guard !unacknowledged.isEmpty else {
            isFlushing = false
            return []
        }
        defer { unacknowledged = [] }
        return unacknowledged
    }

    /// Records that the compensating writes of the flushed changesets were sent. Those committed during the flush are still unsent.
    mutating func compensationsSent() { firstUntold = unacknowledged.first { $0.compensation != nil }?.changeset }

    /// Records that flushes have ended without covering all changesets.
    mutating func stopFlushing() { isFlushing = false }
}
