import SluiceCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The path of the admin port's Unix socket, mode 0600.
///
/// The server first listens in a private folder. No other user can connect before the mode is set. `publish` then moves the socket to its
/// path.
struct AdminSocket: Sendable {
    let path: String
    private let folder: String
    private let published = PublishedFile()
    var hiddenPath: String { folder + "/s" }

    /// The longest path of a socket in the kernel, in bytes.
    private static let pathBytes = 107

    /// Creates the private folder.
    ///
    /// - Throws: `configInvalid`; `portInUse` if another process serves the path.
    init(_ path: String) throws(SluiceError) {
        self.path = path
        folder = "\(path).\(getpid())"
        guard hiddenPath.utf8.count <= Self.pathBytes else {
            throw SluiceError(.configInvalid, "The path of the admin socket is too long: \(path).", fix: "Use at most 90 bytes.")
        }
        if let status = FileStatus(withoutFollowing: path) {
            guard status.kind == .socket else {
                throw SluiceError(.configInvalid, "\(path) exists and is not a socket.", fix: "Choose another path with --admin-socket.")
            }
            if UnixSocket.isServed(path) {
                throw SluiceError(
                    .portInUse, "Another process serves the admin socket \(path).", fix: "Choose another path with --admin-socket.")
            }
        }
        unlink(hiddenPath)
        rmdir(folder)
        guard mkdir(folder, 0o700) == 0 else {
            throw SluiceError(
                .configInvalid, "The admin socket \(path) cannot be created.",
                fix: "Name a path in a folder that the gateway may write to.", cause: Self.systemCause)
        }
    }

    /// The failure of the last system call.
    private static var systemCause: ErrorCause {
        let number = errno
        return .system(errno: number, text: String(cString: strerror(number)))
    }

    /// Moves the socket to its path. Call it once the server listens.
    func publish() throws(SluiceError) {
        // Before the path is public, so that the file is this gateway's for certain.
        published.file = FileStatus(withoutFollowing: hiddenPath)?.identity
        // The mode is set before other users can reach the socket. `rename` replaces a stale socket atomically.
        guard chmod(hiddenPath, 0o600) == 0, rename(hiddenPath, path) == 0 else {
            throw SluiceError(.configInvalid, "The admin socket \(path) cannot be created.", cause: Self.systemCause)
        }
        rmdir(folder)
    }

    /// Removes the files of `init` and `publish`.
    ///
    /// The path may have another gateway's socket by now. Only the file is compared: a process that is being started holds a copy of this
    /// gateway's socket for a moment, and would answer a connection.
    func remove() {
        unlink(hiddenPath)
        rmdir(folder)
        if let file = published.file, FileStatus(withoutFollowing: path)?.identity == file { unlink(path) }
    }
}

/// The file that `AdminSocket.publish` has moved to its path.
private final class PublishedFile: Sendable {
    private let state = Mutex<FileStatus.Identity?>(nil)

    var file: FileStatus.Identity? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

/// A client of Unix sockets, with blocking calls.
package enum UnixSocket {
    /// `true` if a process accepts connections at the path.
    static func isServed(_ path: String) -> Bool {
        guard let socket = connect(path) else { return false }
        close(socket)
        return true
    }

    /// - Returns: The descriptor of a connection, which the caller must close; nil on failure.
    package static func connect(_ path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            close(descriptor)
            return nil
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
