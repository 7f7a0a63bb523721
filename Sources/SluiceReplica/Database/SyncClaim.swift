package import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The exclusive right of one process to sync a client replica. Two processes that upload the same changesets would end each other's
/// sessions forever. The system releases the claim when the process is killed.
package final class SyncClaim: Sendable {
    /// Returns the path of the lock file beside the database, which has SQLite's own locks. The lock file is never deleted, since another
    /// process may be about to lock it.
    package static func file(of path: String) -> String { path + ".sync" }

    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Takes the claim. Blocks the thread while it waits.
    /// - Parameter milliseconds: the maximum wait for the current holder. In the same process, a Realm that was just closed.
    /// - Returns: `nil` if another holder keeps the claim.
    /// - Throws: `deviceFull`, or `internalError` if the lock file cannot be created.
    package static func take(_ path: String, within milliseconds: Int = 2_000) throws(SluiceError) -> SyncClaim? {
        let file = file(of: path)
        let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            // Read at once: any later call may set it.
            let number = errno
            throw SluiceError(
                [ENOSPC, EDQUOT].contains(number) ? .deviceFull : .internalError, "\(file) cannot be created.",
                fix: "Check that the folder exists, that this user may write to it, and that the disk has room.",
                cause: .system(errno: number, text: String(cString: strerror(number))))
        }
        let claim = SyncClaim(descriptor: descriptor)
        var left = milliseconds
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            // Without file locks there is no way to detect a second process. Sync anyway.
            guard errno == EWOULDBLOCK || errno == EINTR else { return claim }
            guard left > 0 else { return nil }
            usleep(5_000)
            left -= 5
        }
        return claim
    }
}
