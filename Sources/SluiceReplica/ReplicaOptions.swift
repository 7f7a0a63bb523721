/// How a file is opened.
package struct ReplicaOptions: Sendable {
    /// Nothing is written, not even what the schema lacks; the file has to exist and to have the schema's classes and properties.
    package var isReadOnly = false
    /// The file goes away with the replica and is not kept safe from a crash: for Realms in memory. No other process is told of commits.
    package var isTemporary = false
    /// Asked while the file is opened, with its bytes in all and those in use; true: it is compacted, which takes about as long as copying it
    /// and as much room. Not asked for a file that is new or only read.
    package var shouldCompact: (@Sendable (_ totalBytes: Int, _ usedBytes: Int) -> Bool)?

    /// The tables are left as they are, for `Replica.beginMigration`.
    package var isUnfitted = false
    /// Whose writes the file is to hold; nil where it is not synced. A file without an owner gets this one.
    package var owner: String?

    package init(
        isReadOnly: Bool = false, isTemporary: Bool = false, shouldCompact: (@Sendable (Int, Int) -> Bool)? = nil, isUnfitted: Bool = false,
        owner: String? = nil
    ) {
        self.owner = owner
        self.isUnfitted = isUnfitted
        self.isReadOnly = isReadOnly
        self.isTemporary = isTemporary
        self.shouldCompact = shouldCompact
    }
}
