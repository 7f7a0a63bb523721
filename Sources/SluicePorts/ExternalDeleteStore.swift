package import SluiceCore

/// An external delete: an object, or all objects of a class, deleted by a transaction of another program.
package struct ExternalDelete: Equatable, Sendable {
    package var type: String
    /// The key of the object; nil for all objects, by TRUNCATE.
    package var key: Value?
    /// The LSN of the commit record.
    package var lsn: LSN
    /// The commit time, in microseconds since 1970, UTC.
    package var commitTime: Int64

    package init(type: String, key: Value?, lsn: LSN, commitTime: Int64) {
        (self.type, self.key, self.lsn, self.commitTime) = (type, key, lsn, commitTime)
    }
}

/// Records external deletes of objects that devices had written.
/// PostgreSQL keeps no trace of a deleted row, and merging must know which writers had seen the delete.
package protocol ExternalDeleteStore: Sendable {
    /// Records deletes. Skips those recorded already and objects written again since, so repeating a call is safe.
    /// - Parameter deletions: Each object once, in the order in which changesets lock objects; then the classes.
    func remember(_ deletions: [ExternalDelete]) async throws
}
