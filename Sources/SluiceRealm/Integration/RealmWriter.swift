/// The time and file of a write. Of two concurrent writes, the one with the later stamp wins.
package struct RealmStamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 2015-01-01, by the clock of the writer.
    package var time: UInt64
    /// The file that wrote; 1 for the server.
    package var file: UInt64

    package init(_ time: UInt64, _ file: UInt64) { (self.time, self.file) = (time, file) }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.time, lhs.file) < (rhs.time, rhs.file) }
}

/// The writer of a changeset, and the state that it had seen.
package struct RealmWriter: Hashable, Sendable {
    package var stamp: RealmStamp
    /// The last server version that the writer had integrated.
    package var base: UInt64
    /// The server version of the changeset.
    package var version: UInt64

    package init(stamp: RealmStamp, base: UInt64, version: UInt64) {
        (self.stamp, self.base, self.version) = (stamp, base, version)
    }

    package var file: UInt64 { stamp.file }

    /// `true` if another file made the change, and the writer had not seen it.
    func isConcurrent(_ version: UInt64, by file: UInt64) -> Bool { version > base && file != self.file }
}

/// The history that was dropped before every file had seen it: the last version by file.
///
/// A file's own changes do not count. A lone writer never needs a reset, although its base stays old while it receives nothing.
package struct RealmForgottenHistory: Hashable, Sendable {
    private var versions: [UInt64: UInt64] = [:]

    mutating func add(_ version: UInt64, by file: UInt64) { versions[file] = max(versions[file] ?? 0, version) }

    mutating func prune(seenByAll horizon: UInt64) { versions = versions.filter { $0.value > horizon } }

    /// Returns `true` if a changeset of the file can be integrated.
    func admits(_ file: UInt64, base: UInt64) -> Bool { !versions.contains { $0.key != file && $0.value > base } }
}

/// The bounds of the memory that the integration keeps.
///
/// Beyond a bound, the oldest history is dropped, and a file that still needs it is reset. The file then recovers its own changes.
package struct RealmIntegrationBounds: Hashable, Sendable {
    /// The edits of one list that are remembered.
    package var listEdits: Int
    /// The additions to one counter that are remembered.
    package var additions: Int
    /// The barriers of one file.
    package var barriers: Int

    package init(listEdits: Int = 10_000, additions: Int = 4_096, barriers: Int = 100_000) {
        (self.listEdits, self.additions, self.barriers) = (listEdits, additions, barriers)
    }
}
