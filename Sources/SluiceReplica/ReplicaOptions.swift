package import SluiceCore

/// The options of opening a client replica.
package struct ReplicaOptions: Sendable {
    /// Opens the file for reading only. It must exist and have the schema's classes and properties.
    package var isReadOnly = false
    /// Deletes the file with the replica and does not protect it from crashes: for Realms in memory. Does not notify other processes.
    package var isTemporary = false
    /// Called while the file is opened, with its size and the bytes in use. If it returns `true`, the file is compacted. Compaction takes
    /// about the time and space of a copy. Not called for a new file or a read-only one.
    package var shouldCompact: (@Sendable (_ totalBytes: Int, _ usedBytes: Int) -> Bool)?

    /// Leaves the tables unchanged, for `Replica.beginMigration`.
    package var isUnfitted = false
    /// The owner of the file's writes. `nil` if it is not synced. A file without an owner gets this one.
    package var owner: String?
    /// The bound of a changeset. `nil` if none is uploaded.
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

/// The bound of a changeset in one message.
package struct UploadBound: Sendable {
    /// The maximum size of the message, in bytes.
    package var bytes: Int
    /// Returns the size of a message with only this changeset, in bytes.
    package var measure: @Sendable (Changeset) throws(SluiceError) -> Int

    package init(bytes: Int, measure: @escaping @Sendable (Changeset) throws(SluiceError) -> Int) {
        self.bytes = bytes
        self.measure = measure
    }

    /// Rejects a changeset that no message can carry.
    /// - Parameter stored: the size of its changes in the file, in bytes. The message is at most eight times as large.
    /// - Throws: `writeTooLarge` with the size and the bound.
    func check(_ changeset: Changeset, stored: Int) throws(SluiceError) {
        guard stored > bytes / 8 else { return }
        let size = try measure(changeset)
        guard size > bytes else { return }
        throw SluiceError(
            .writeTooLarge, "The write transaction has \(size) bytes to upload. One upload may have \(bytes) bytes.",
            fix: "Write the objects in several transactions.")
    }

    /// Rejects an asymmetric object that no message can carry.
    /// - Throws: `ingestTooLarge` with the size and the bound.
    func check(_ object: ObjectChange) throws(SluiceError) {
        // The largest numbers: a batch has a number too.
        let alone = Changeset(
            number: .max, time: HybridTime(rawValue: .max), base: LSN(rawValue: .max), changes: [object])
        let size = try measure(alone)
        guard size > bytes else { return }
        throw UploadBound.tooLarge(object.object.type, bytes: size, maximum: bytes)
    }

    /// Returns the error for an asymmetric object that no message can carry.
    package static func tooLarge(_ type: String, bytes: Int, maximum: Int) -> SluiceError {
        SluiceError(
            .ingestTooLarge, "An object of class \(type) has \(bytes) bytes to upload. One upload may have \(maximum) bytes.",
            fix: "Split the object into several.")
    }
}
