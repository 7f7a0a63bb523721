import SluiceCore
import SluiceWire

/// The changes that pass a session while its bootstrap runs, held until the snapshot says which of them it contains.
struct StagedChanges {
    struct Change {
        var xid: UInt32
        var type: Int
        var key: Value
        /// The encoded row, masked for the session; nil when the object left the view.
        var row: [UInt8]?
        /// The client's own changeset that the transaction is; 0: none.
        var changeset: UInt64 = 0
        var position = Position.zero
        /// Why it left; nil while it is there.
        var leaving: ViewEvent?
        /// Write times of the row for the session, encoded; empty for SQL.
        var times: [UInt8] = []
        /// When the transaction was committed, milliseconds since 1970.
        var commitTime: Int64 = 0
    }

    private(set) var changes: [Change] = []
    /// The newest changeset of the client's own among them.
    private(set) var changeset: UInt64 = 0
    private var bytes = 0
    /// Too much came: the bootstrap has to start again.
    private(set) var hasOverflowed = false
    /// The transactions that emptied a class of the view.
    private var truncations: [UInt32] = []

    mutating func truncated(by xid: UInt32) {
        if hold(bytes: 0) { truncations.append(xid) }
    }

    /// Whether there is room for one thing more, within `Limits.stagedBytes`; what is beyond it starts the bootstrap again.
    private mutating func hold(bytes more: Int) -> Bool {
        guard !hasOverflowed else { return false }
        bytes += more + 64
        guard bytes > Limits.stagedBytes else { return true }
        hasOverflowed = true
        (changes, truncations) = ([], [])
        return false
    }

    /// Whether the bootstrap has to start again: too much came, or a table was emptied by a transaction that the snapshot does not
    /// see. What it read of that table may be nothing, since TRUNCATE does not spare older snapshots.
    func requiresAnother(than snapshot: TransactionSnapshot) -> Bool {
        hasOverflowed || truncations.contains { !snapshot.sees(xid: $0) }
    }

    mutating func append(_ change: Change) {
        guard hold(bytes: (change.row?.count ?? 0) + change.times.count) else { return }
        changes.append(change)
        changeset = max(changeset, change.changeset)
    }

    /// The last word on each object after what the log was read for. Nil when the bootstrap has to start again.
    func words(after tail: LogTail) -> [Change]? {
        guard !hasOverflowed, truncations.isEmpty else { return nil }
        var tail = tail
        for change in changes { tail.add(change) }
        return tail.words.values.sorted { $0.position < $1.position }
    }

    /// The last word on each object that the snapshot does not contain, in order of first mention.
    func unseen(by snapshot: TransactionSnapshot) -> [Change] {
        var order: [Change] = []
        var index: [ObjectIndex: Int] = [:]
        for change in changes where !snapshot.sees(xid: change.xid) {
            let object = ObjectIndex(type: change.type, key: change.key)
            if let at = index[object] {
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
