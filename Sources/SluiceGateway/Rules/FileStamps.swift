import FoundationEssentials
import SluiceCore

/// The state of some files without their content: inode, size and time of the last status change.
struct FileStamps: Hashable, Sendable {
    private struct Stamp: Hashable {
        var identity: FileStatus.Identity
        var bytes: Int64
        var changed: Int64
    }

    /// The stamps by path. Files that do not exist have none.
    private var stamps: [String: Stamp] = [:]

    /// The stamps of all files in a folder and its subfolders. It takes about 5 µs per file.
    init(under folder: String) {
        self.init(of: ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).map { "\(folder)/\($0)" })
    }

    init(of paths: [String]) {
        for path in paths {
            guard let status = FileStatus(at: path) else { continue }
            stamps[path] = Stamp(identity: status.identity, bytes: status.bytes, changed: status.changed)
        }
    }

    func merging(_ other: FileStamps) -> FileStamps {
        var both = self
        both.stamps.merge(other.stamps) { _, new in new }
        return both
    }
}
