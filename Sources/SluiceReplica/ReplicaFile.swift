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

/// A local file and what lies beside it.
package enum ReplicaFile {
    /// Of the files of a replica, what follows the path.
    private static let endings = ["", "-wal", "-shm", "-wal" + SLUICE_VFS_MARK_ENDING, noteEnding]
    static let noteEnding = ".note"

    /// All files of a replica, those that exist and those that do not.
    package static func files(_ path: String) -> [String] { endings.map { path + $0 } }

    /// Whether another process has the file open: SQLite holds a lock of the database for as long, in the mode that writes ahead
    /// (sqlite.org, Write-Ahead Logging and File Locking in SQLite v3). Not for files that this process has open, whose locks it
    /// would let go of.
    package static func isOpenElsewhere(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        return unsafe fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Has connections of this process that are still closing leave alone what lies at the path from now on: the last one of a file deletes
    /// its log by name. Called before the files are moved or deleted.
    package static func detach(_ path: String) { sluice_vfs_detach(path) }

    /// Held while files are removed by name, so that none comes between a look at whose they are and their removal.
    private static let removing = Mutex(())

    /// What tells a database from another that has taken its place; nil when there is none. No other has its number while it is open.
    static func number(of path: String) -> UInt64? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Removes the files of a replica that nobody has open, other than connections of this process that are closing.
    /// - Returns: whether the database itself was there and is gone.
    @discardableResult
    package static func remove(_ path: String) -> Bool { removing.withLock { _ in unlinkAll(path) } }

    /// Removes the files of a replica that is closing, unless another has taken its place.
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
    /// Writes a compacted copy of what is committed. A copy of a synced file keeps rows and pending writes, and asks the server for an
    /// identity of its own when it is opened. Blocks for about as long as copying the file takes.
    /// - Throws: when there is a file at the path already, or it cannot be written.
    package func writeCopy(to target: String) throws(SluiceError) {
        if access(target, F_OK) == 0 {
            throw SluiceError(.internalError, "There is a file at \(target) already.", fix: "Choose another path or remove the file.")
        }
        try readNow { writer throws(SluiceError) in
            let statement = try Statement("VACUUM INTO ?", on: writer.connection)
            statement.bind(0, target)
            try statement.run()
        }
        guard isSynced else { return }
        let copy = try Replica(path: target, schema: schema)
        try copy.commitNow { writer throws(SluiceError) in try writer.forgetServer(reset: nil) }
    }
}
