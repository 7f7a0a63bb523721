public import Foundation
import SluiceReplica

/// The files of a Realm on disk.
enum RealmFiles {
    /// Deletes the files.
    /// - Returns: `true` if the database existed.
    /// - Throws: `Realm.Error.fileOperationFailed`.
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

    /// Deletes the files and blocks openings in this process until they are deleted.
    /// - Throws: `Realm.Error.alreadyOpen` if a Realm of this or another process has the file open; `fileOperationFailed`.
    static func removeUnlessOpen(_ path: String) throws -> Bool {
        let isRemoved = try OpenFile.unlessOpen(path) {
            if ReplicaFile.isOpenElsewhere(path) {
                throw Realm.Error(
                    .alreadyOpen, "The files of \(path) cannot be deleted: another process has them open. End it first.")
            }
            ClientResetBackup.forget(path)
            return try RealmFiles.remove(path)
        }
        guard let isRemoved else {
            throw Realm.Error(.alreadyOpen, "The files of \(path) cannot be deleted: a Realm has them open. Let go of it first.")
        }
        return isRemoved
    }

    /// Deletes the files of several paths. A path that fails does not keep the later ones on the device.
    /// - Throws: The first error, after all other files are deleted.
    static func removeUnlessOpen(_ paths: [String]) throws {
        var failure: (any Error)?
        for path in paths {
            do {
                _ = try removeUnlessOpen(path)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Copies a seed file to the path if there is no file yet.
    /// - Throws: `Realm.Error.fileNotFound` if the seed file does not exist; `fileOperationFailed`.
    static func plant(_ seed: URL, at path: String) throws {
        if FileManager.default.fileExists(atPath: path) { return }
        guard FileManager.default.fileExists(atPath: seed.path) else {
            throw Realm.Error(.fileNotFound, "The seed file \(seed.path) does not exist.")
        }
        // Copy the log first and rename the database last: the file at the path is then complete at any time.
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
    /// `true` if the file of a configuration exists.
    public static func fileExists(for configuration: Configuration) -> Bool {
        configuration.path.map { FileManager.default.fileExists(atPath: $0) } ?? false
    }

    /// Deletes the file of a configuration and its companion files.
    /// - Returns: `true` if the file existed.
    /// - Throws: `Realm.Error.alreadyOpen` if a Realm of this or another process has the file open; `fileOperationFailed`.
    @discardableResult
    public static func deleteFiles(for configuration: Configuration) throws -> Bool {
        guard let path = configuration.path else { return false }
        return try RealmFiles.removeUnlessOpen(path)
    }

    /// Writes a compacted copy of the committed state to a new file. Takes about as long as copying the file.
    /// A copy of a synced Realm has all data of the device, and gets a client id of its own from the server.
    /// - Parameter encryptionKey: See `Configuration.encryptionKey`.
    /// - Throws: `Realm.Error.fileExists`, or the reason why the copy was not written.
    public func writeCopy(toFile fileURL: URL, encryptionKey: Data? = nil) throws {
        if encryptionKey != nil { throw Error.encryption }
        core.scheduler.verify()
        if core.isWriting { throwRealmException("Cannot write a copy of a Realm in a write transaction.") }
        if FileManager.default.fileExists(atPath: fileURL.path) {
            throw Error(.fileExists, "A copy cannot be written to \(fileURL.path): there is a file already.")
        }
        try asRealmError { try core.replica.writeCopy(to: fileURL.path) }
    }

    /// Writes a compacted copy to the file of a configuration.
    public func writeCopy(configuration: Configuration) throws {
        guard let url = configuration.fileURL else { throw Error(.invalidInput, "A copy needs a configuration with a fileURL.") }
        try writeCopy(toFile: url, encryptionKey: configuration.encryptionKey)
    }
}
