package import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The right to sync a file, which one process has at a time: two that upload the same changesets would end each other's sessions
/// without end. The system takes it back from a process that is killed.
package final class SyncClaim: Sendable {
    /// The file that is locked, beside the database, which has locks of SQLite's own. It stays, since another process may be about to
    /// lock it.
    package static func file(of path: String) -> String { path + ".sync" }

    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// - Parameter milliseconds: to wait at most for whoever has it. In this process that is a Realm that has just been let go of.
    /// - Returns: nil when another has it.
    /// - Throws: `deviceFull`, or `internalError` when the file cannot be made.
    package static func take(_ path: String, within milliseconds: Int = 2_000) throws(SluiceError) -> SyncClaim? {
        let file = file(of: path)
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code: ErrorCode = [ENOSPC, EDQUOT].contains(errno) ? .deviceFull : .internalError
            throw SluiceError(
                code, "\(file) cannot be made: \(String(cString: strerror(errno))).",
                fix: "See that the folder exists, that this user may write it, and that there is room.")
        }
        let claim = SyncClaim(descriptor: descriptor)
        var left = milliseconds
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            // A file system without locks has no second process to fear more than before.
            guard errno == EWOULDBLOCK || errno == EINTR else { return claim }
            guard left > 0 else { return nil }
            usleep(5_000)
            left -= 5
        }
        return claim
    }
}
