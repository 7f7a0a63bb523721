package import SluiceCore

/// A connection of its own that sees the file as it was at the last `refresh`, until the next.
///
/// Confined to one Realm. While it lives it keeps the log of the file from shrinking, so it should be refreshed or let go.
package final class ReplicaReader {
    package let replica: Replica
    package let store: RowStore
    private let connection: Connection
    /// The version of the state that is seen: exactly the commits up to it.
    package private(set) var version: UInt64 = 0

    init(of replica: Replica) throws(SluiceError) {
        self.replica = replica
        connection = try Connection.open(path: replica.path, replica.options.isReadOnly ? .readOnly : .reader)
        store = RowStore(connection: connection, layouts: replica.layouts, links: replica.links, isWriter: false)
        try begin()
    }

    deinit { replica.note(ObjectIdentifier(self), at: nil) }

    /// How much SQLite has done for what was read here, in its own instructions; a row that it looks at takes some.
    package var instructions: Int { connection.instructions }

    /// Whether there is something newer to see.
    package var isStale: Bool { isStale(atLeast: 0) }

    /// The same for a caller who knows of a version that observers may not have been told of yet, see `Replica.committedVersion()`.
    package func isStale(atLeast wanted: UInt64) -> Bool { version < max(replica.version, wanted) }

    /// Moves to the newest state. - Returns: whether there was something newer.
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
