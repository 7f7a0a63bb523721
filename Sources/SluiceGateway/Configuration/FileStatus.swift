// Both imports are needed: the module that the compiler takes `stat` from depends on the order in which it loads the others.
import Dispatch

#if canImport(Glibc)
    import Glibc
#endif

/// The properties of a file that the system keeps beside its content.
package struct FileStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case regular, folder, socket, other
    }

    /// The identity of a file in the system. Another file can have it after this one is removed.
    package struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    package let kind: Kind
    /// The permission bits with set-user-ID, set-group-ID and sticky, from 0 to 0o7777.
    package let mode: UInt32
    package let bytes: Int64
    package let identity: Identity
    /// The nanoseconds since 1970 at which content or properties changed last.
    package let changed: Int64

    /// The status of the file that a path or its symbolic link names, or `nil` if there is none or it is not reachable.
    package init?(at path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The status of the file or symbolic link that a path names, or `nil` if there is none or it is not reachable.
    package init?(withoutFollowing path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The status of an open file, or `nil` if the descriptor is not open.
    package init?(of descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            case S_IFSOCK: .socket
            default: .other
            }
        mode = status.st_mode & 0o7777
        bytes = Int64(status.st_size)
        identity = Identity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
        changed = Int64(status.st_ctim.tv_sec) * 1_000_000_000 + Int64(status.st_ctim.tv_nsec)
    }
}
