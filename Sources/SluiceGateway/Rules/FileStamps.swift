import FoundationEssentials
import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// The state of some files without their content: inode, size and time of the last status change.
struct FileStamps: Hashable, Sendable {
    private struct Stamp: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int64
        var nanoseconds: Int64
    }

    /// The stamps by path. Files that do not exist have none.
    private var stamps: [String: Stamp] = [:]

    /// The stamps of all files in a folder and its subfolders. It takes about 5 µs per file.
    init(under folder: String) {
        self.init(of: ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).map { "\(folder)/\($0)" })
    }

    init(of paths: [String]) {
        for path in paths {
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            stamps[path] = Stamp(
                inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: Int64(status.st_ctim.tv_sec),
                nanoseconds: Int64(status.st_ctim.tv_nsec))
        }
    }

    func merging(_ other: FileStamps) -> FileStamps {
        var both = self
        both.stamps.merge(other.stamps) { _, new in new }
        return both
    }
}
