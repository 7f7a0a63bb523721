import FoundationEssentials
import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// What tells one state of some files from another without reading them: inode, size, and when they were changed.
struct FileStamps: Hashable, Sendable {
    private struct Stamp: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int64
        var nanoseconds: Int64
    }

    /// Files that are not there are missing.
    private var stamps: [String: Stamp] = [:]

    /// All files in a folder and below; it takes about 5 µs a file.
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
