import SluiceCore
import SluiceWire

/// The changes that pass a session during its bootstrap, held until the snapshot shows which of them it contains.
struct StagedChanges {
    /// The transaction of a change.
    struct Transaction {
        var xid: UInt32
        /// The client's own changeset number of the transaction; 0 for none.
        var changeset: UInt64 = 0
        /// The commit time, in milliseconds since 1970.
        var commitTime: Int64 = 0
    }

    struct Change {
        var transaction: Transaction
        var type: Int
        var key: Value
        /// The encoded row, masked for the session; nil if the object left the view.
        var row: [UInt8]?
        var position = Position.zero
        /// The reason for leaving; nil while the object is in the view.
        var leaving: ViewEvent?
        /// The encoded write times of the row for the session; empty for SQL.
        var times: [UInt8] = []
    }

    private(set) var changes: [Change] = []
    /// The newest changeset of the client itself among them.
    private(set) var changeset: UInt64 = 0
    private var bytes = 0
    /// `true` if the bound was exceeded, so that the bootstrap must start again.
    private(set) var hasOverflowed = false
    /// The transactions that truncated a class of the view.
    private var truncations: [UInt32] = []

    mutating func truncated(by xid: UInt32) {
        if hold(bytes: 0) { truncations.append(xid) }
    }

    /// Reserves room for one more entry within `Limits.stagedBytes`.
    /// - Returns: `false` if the bound is exceeded; all changes are dropped then.
    private mutating func hold(bytes more: Int) -> Bool {
        guard !hasOverflowed else { return false }
        // 64 bytes approximate the overhead of an entry.
        bytes += more + 64
        guard bytes > Limits.stagedBytes else { return true }
        // All go at once: a part of the changes would pass for all of them when the snapshot takes over.
        hasOverflowed = true
        (changes, truncations) = ([], [])
        return false
    }

    /// Returns `true` if the bootstrap must start again: the bound was exceeded, or the snapshot misses a truncation.
    /// TRUNCATE also empties the table for older snapshots, so the rows read may be incomplete.
    func requiresAnother(than snapshot: TransactionSnapshot) -> Bool {
        hasOverflowed || truncations.contains { !snapshot.sees(xid: $0) }
    }

    mutating func append(_ change: Change) {
        guard hold(bytes: (change.row?.count ?? 0) + change.times.count) else { return }
        changes.append(change)
        changeset = max(changeset, change.transaction.changeset)
    }

    /// Returns the last change of each object after the log's part, in commit order; nil if the bootstrap must start again.
    func words(after tail: LogTail) -> [Change]? {
        // A truncation names no objects, so the log cannot show which ones left the view.
        guard !hasOverflowed, truncations.isEmpty else { return nil }
        var tail = tail
        // The two overlap. The later change of each object wins, by its position.
        for change in changes { tail.add(change) }
        return tail.words.values.sorted { $0.position < $1.position }
    }

    /// Returns the last change of each object that the snapshot does not contain, in order of first mention.
    func unseen(by snapshot: TransactionSnapshot) -> [Change] {
        var order: [Change] = []
        var index: [ObjectIndex: Int] = [:]
        for change in changes where !snapshot.sees(xid: change.transaction.xid) {
            let object = ObjectIndex(type: change.type, key: change.key)
            if let at = index[object] {
                // The later change replaces the earlier one, and takes over its write times.
                order[at] = change.following(order[at])
            } else {
                index[object] = order.count
                order.append(change)
            }
        }
        return order
    }

    private struct ObjectIndex: Hashable {
        var type: Int
        var key: Value
    }
}
