import SluiceCore

@testable import SluiceRealm

extension RealmWriter {
    /// `true` if another file made the change, and the writer had not seen it.
    func isConcurrent(_ version: UInt64, by file: UInt64) -> Bool { version > base && file != self.file }
}

/// The history that was dropped before every file had seen it: the last version by file.
///
/// A file's own changes do not count. A lone writer never needs a reset, although its base stays old while it receives nothing.
struct RealmForgottenHistory: Hashable, Sendable {
    private var versions: [UInt64: UInt64] = [:]

    mutating func add(_ version: UInt64, by file: UInt64) { versions[file] = max(versions[file] ?? 0, version) }

    mutating func prune(seenByAll horizon: UInt64) { versions = versions.filter { $0.value > horizon } }

    /// Returns `true` if a changeset of the file can be integrated.
    func admits(_ file: UInt64, base: UInt64) -> Bool { !versions.contains { $0.key != file && $0.value > base } }
}

/// The bounds of the memory that the integration keeps.
///
/// Beyond a bound, the oldest history is dropped, and a file that still needs it is reset. The file then recovers its own changes.
struct RealmIntegrationBounds: Hashable, Sendable {
    /// The edits of one list that are remembered.
    var listEdits: Int
    /// The additions to one counter that are remembered.
    var additions: Int
    /// The barriers of one file.
    var barriers: Int

    init(listEdits: Int = 10_000, additions: Int = 4_096, barriers: Int = 100_000) {
        (self.listEdits, self.additions, self.barriers) = (listEdits, additions, barriers)
    }
}
