public import Foundation
import SluiceReplica

/// The files of a Realm on disk.
enum RealmFiles {
    /// - Returns: whether the database itself was there.
    static func remove(_ path: String) throws -> Bool {
        var isRemoved = false
        ReplicaFile.detach(path)
        for file in ReplicaFile.files(path) + [SyncClaim.file(of: path)] where FileManager.default.fileExists(atPath: file) {
            do {
                try FileManager.default.removeItem(atPath: file)
            } catch {
                throw Realm.Error(.fileOperationFailed, "The file \(file) cannot be deleted: \(error.localizedDescription)")
            }
            if file == path { isRemoved = true }
        }
        return isRemoved
    }

    /// The same while nobody of this process can open the file.
    /// - Throws: `Realm.Error.alreadyOpen` when a Realm of this or of another process has it open.
    static func removeUnlessOpen(_ path: String) throws -> Bool {
        let isRemoved = try OpenFile.unlessOpen(path) {
            if ReplicaFile.isOpenElsewhere(path) {
                throw Realm.Error(
                    .alreadyOpen, "The files of \(path) cannot be deleted: another process has them open. End it first.")
            }
            SetAside.forget(path)
            return try RealmFiles.remove(path)
        }
        guard let isRemoved else {
            throw Realm.Error(.alreadyOpen, "The files of \(path) cannot be deleted: a Realm has them open. Let go of it first.")
        }
        return isRemoved
    }

    /// Copies a file to where there is none yet.
    static func plant(_ seed: URL, at path: String) throws {
        if FileManager.default.fileExists(atPath: path) { return }
        guard FileManager.default.fileExists(atPath: seed.path) else {
            throw Realm.Error(.fileNotFound, "The seed file \(seed.path) does not exist.")
        }
        // The database under another name first and its log before it, so that what is at the path is whole.
        let half = path + ".seed"
        do {
            try copy(seed.path + "-wal", to: path + "-wal")
            try copy(seed.path, to: half)
            try FileManager.default.moveItem(atPath: half, toPath: path)
        } catch {
            throw Realm.Error(.fileOperationFailed, "The seed file \(seed.path) cannot be copied: \(error.localizedDescription)")
        }
    }
}

extension RealmFiles {
    private static func copy(_ source: String, to target: String) throws {
        if FileManager.default.fileExists(atPath: target) { try FileManager.default.removeItem(atPath: target) }
        if FileManager.default.fileExists(atPath: source) { try FileManager.default.copyItem(atPath: source, toPath: target) }
    }
}

extension Realm {
    /// Whether the file of a configuration exists.
    public static func fileExists(for configuration: Configuration) -> Bool {
        configuration.path.map { FileManager.default.fileExists(atPath: $0) } ?? false
    }

    /// Deletes the file of a configuration and those that belong to it.
    /// - Returns: whether there was one.
    /// - Throws: `Realm.Error.alreadyOpen` when a Realm of this or of another process has it open.
    @discardableResult
    public static func deleteFiles(for configuration: Configuration) throws -> Bool {
        guard let path = configuration.path else { return false }
        return try RealmFiles.removeUnlessOpen(path)
    }

    /// Writes a compacted copy of what is committed to a file that does not exist yet; a synced Realm's copy has everything
    /// that is on the device and is a device of its own for the server. It takes about as long as copying the file.
    /// - Parameter encryptionKey: see `Configuration.encryptionKey`.
    /// - Throws: `Realm.Error.fileExists`, or why the copy cannot be written.
    public func writeCopy(toFile fileURL: URL, encryptionKey: Data? = nil) throws {
        if encryptionKey != nil { throw Error.encryption }
        core.scheduler.verify()
        if core.isWriting { throwRealmException("Cannot write a copy of a Realm in a write transaction.") }
        if FileManager.default.fileExists(atPath: fileURL.path) {
            throw Error(.fileExists, "A copy cannot be written to \(fileURL.path): there is a file already.")
        }
        try asRealmError { try core.replica.writeCopy(to: fileURL.path) }
    }

    /// The same to the file of a configuration.
    public func writeCopy(configuration: Configuration) throws {
        guard let url = configuration.fileURL else { throw Error(.invalidInput, "A copy needs a configuration with a fileURL.") }
        try writeCopy(toFile: url, encryptionKey: configuration.encryptionKey)
    }
}
