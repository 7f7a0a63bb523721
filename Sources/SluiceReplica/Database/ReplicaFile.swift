import CSluiceVFS
package import SluiceCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The database file of a client replica and the files beside it.
package enum ReplicaFile {
    /// The suffixes of a replica's files.
    private static let endings = ["", "-wal", "-shm", "-wal" + SLUICE_VFS_MARK_ENDING, noteEnding]
    static let noteEnding = ".note"

    /// Returns the paths of all files of a replica, existing or not.
    package static func files(_ path: String) -> [String] { endings.map { path + $0 } }

    /// `true` if another process has the file open. In WAL mode, SQLite holds a lock of the database for that time (sqlite.org,
    /// Write-Ahead Logging and File Locking in SQLite v3). Must not be called for a file that this process has open: closing the
    /// descriptor would release the process's locks.
    package static func isOpenElsewhere(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        return unsafe fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Stops this process's closing connections from touching files at the path by name. The last connection of a file would delete its
    /// WAL by name. Call it before the files are moved or deleted.
    package static func detach(_ path: String) { sluice_vfs_detach(path) }

    /// Held while files are removed by name, so that their identity cannot change between the check and the removal.
    private static let removing = Mutex(())

    /// Returns the inode of a database, or `nil` if it does not exist. It distinguishes a file from its replacement while the file is
    /// open.
    static func number(of path: String) -> UInt64? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Lets only the user of this process read and write a file. Does nothing to a file of another user.
    package static func protect(_ path: String) { _ = chmod(path, 0o600) }

    /// Removes the files of a replica that no connection has open, except connections of this process that are closing.
    /// - Returns: `true` if the database existed and was removed.
    @discardableResult
    package static func remove(_ path: String) -> Bool { removing.withLock { _ in unlinkAll(path) } }

    /// Removes the files of a replica that is closing, unless another database has replaced it.
    static func remove(_ path: String, numbered number: UInt64?) {
        removing.withLock { _ in if number != nil, number == self.number(of: path) { unlinkAll(path) } }
    }

    @discardableResult
    private static func unlinkAll(_ path: String) -> Bool {
        var isRemoved = false
        detach(path)
        for ending in endings {
            let result = unlink(path + ending)
            if ending.isEmpty { isRemoved = result == 0 }
        }
        return isRemoved
    }
}

extension Replica {
    /// Writes a compacted copy of the committed state. A copy of a synced replica keeps rows and pending writes, and requests an identity
    /// of its own when it is opened. Blocks for about as long as a file copy.
    /// - Throws: `internalError` if a file exists at the path, or the error of writing it.
    package func writeCopy(to target: String) throws(SluiceError) {
        if access(target, F_OK) == 0 {
            throw SluiceError(.internalError, "A file already exists at \(target).", fix: "Choose another path or remove the file.")
        }
        try readNow { parts throws(SluiceError) in
            let statement = try Statement("VACUUM INTO ?", on: parts.database.connection)
            statement.bind(0, target)
            try statement.run()
        }
        ReplicaFile.protect(target)
        guard isSynced else { return }
        let copy = try Replica(path: target, schema: schema)
        try copy.commitNow { parts throws(SluiceError) in try parts.server.reset.begin(nil) }
    }
}
