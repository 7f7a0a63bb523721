import SluiceCore

/// A changeset that is committed and is to be acknowledged when it will outlive a crash.
struct Acknowledgement {
    var changeset: UInt64
    /// At or after its commit.
    var lsn: LSN
    /// Whether this session has just committed it, so that its commit will come through the log.
    var isCommit: Bool
    /// The message that tells what of it was refused.
    var compensation: [UInt8]?
    /// Objects that are deleted, so that nothing came of what it wrote to them.
    var futile: [ObjectKey] = []

    /// How many of a session may wait for the disk while it goes on.
    static let most = 1_024
}
