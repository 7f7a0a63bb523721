import SluiceCore

/// A committed changeset that is acknowledged once it survives a crash.
struct Acknowledgement {
    var changeset: UInt64
    /// A position at or after its commit.
    var lsn: LSN
    /// `true` if this session has just committed it, so that its commit will pass the log.
    var isCommit: Bool
    /// The encoded compensating write; nil if no write was rejected.
    var compensation: [UInt8]?
    /// Deleted objects, for which its writes have no effect.
    var futile: [ObjectKey] = []

    /// The number of acknowledgements of a session that may wait for the disk before uploads block.
    static let most = 1_024
}
