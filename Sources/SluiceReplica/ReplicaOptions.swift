package import SluiceCore

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
    /// The largest changeset; nil where none is uploaded.
    package var uploadBound: UploadBound?

    package init(
        isReadOnly: Bool = false, isTemporary: Bool = false, shouldCompact: (@Sendable (Int, Int) -> Bool)? = nil, isUnfitted: Bool = false,
        owner: String? = nil, uploadBound: UploadBound? = nil
    ) {
        self.owner = owner
        self.uploadBound = uploadBound
        self.isUnfitted = isUnfitted
        self.isReadOnly = isReadOnly
        self.isTemporary = isTemporary
        self.shouldCompact = shouldCompact
    }
}

/// The bound of a changeset that one message carries.
package struct UploadBound: Sendable {
    /// Of the message, bytes.
    package var bytes: Int
    /// Returns the bytes of a message with the changeset alone.
    package var measure: @Sendable (Changeset) throws(SluiceError) -> Int

    package init(bytes: Int, measure: @escaping @Sendable (Changeset) throws(SluiceError) -> Int) {
        self.bytes = bytes
        self.measure = measure
    }

    /// Refuses a changeset that no message can carry.
    /// - Parameter stored: bytes of its changes in the file. Those of the message are at most eight times as many.
    /// - Throws: `writeTooLarge` with the size and the bound.
    func check(_ changeset: Changeset, stored: Int) throws(SluiceError) {
        guard stored > bytes / 8 else { return }
        let size = try measure(changeset)
        guard size > bytes else { return }
        throw SluiceError(
            .writeTooLarge, "The write transaction has \(size) bytes to upload. One upload may have \(bytes) bytes.",
            fix: "Write the objects in several transactions.")
    }
}
