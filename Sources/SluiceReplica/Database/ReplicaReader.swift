package import SluiceCore

/// A connection of its own that sees the file as it was at the last `refresh`, until the next.
///
/// Confined to one Realm. While it lives it keeps the log of the file from shrinking, so refresh or release it.
package final class ReplicaReader {
    package let replica: Replica
    package let store: RowStore
    private let connection: Connection
    /// The version of the state that the reader sees, which includes exactly the commits up to it.
    package private(set) var version: UInt64 = 0

    init(of replica: Replica) throws(SluiceError) {
        self.replica = replica
        connection = try Connection.open(path: replica.path, replica.options.isReadOnly ? .readOnly : .reader)
        store = RowStore(connection: connection, layouts: replica.layouts, links: replica.links, isWriter: false)
        try begin()
    }

    deinit { replica.note(ObjectIdentifier(self), at: nil) }

    /// The work of SQLite for this reader's queries, in virtual machine instructions. Each visited row costs a few.
    package var instructions: Int { connection.instructions }

    /// `true` if a newer version is committed.
    package var isStale: Bool { isStale(atLeast: 0) }

    /// Returns `true` if a newer version is committed. `wanted` may be ahead of the observers; see `Replica.committedVersion()`.
    package func isStale(atLeast wanted: UInt64) -> Bool { version < max(replica.version, wanted) }

    /// Moves to the newest state. - Returns: `true` if there was a newer one.
    @discardableResult
    package func refresh(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard isStale(atLeast: wanted) else { return false }
        try connection.execute("ROLLBACK")
        try begin()
        return true
    }

    private func begin() throws(SluiceError) {
        try connection.execute("BEGIN")
        // A transaction's view is fixed by its first read, not by BEGIN.
        version = try connection.version()
        replica.note(ObjectIdentifier(self), at: version)
    }
}
