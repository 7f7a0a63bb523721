import SluiceCore

/// The transactions delivered last, by number: a snapshot that does not see one of them was taken in the instant between
/// its commit record and its visibility, and has to be taken again (DESIGN section 4, exact hand-over).
struct DeliveredTransactions {
    /// More than can commit in that instant by far; the oldest makes room.
    static let capacity = 65_536

    /// How far the delivery was.
    struct Mark {
        fileprivate let count: UInt64
        fileprivate let newest: UInt32?
    }

    private var ring: [UInt32] = []
    /// How many were delivered before each of them.
    private var members: [UInt32: UInt64] = [:]
    private var count: UInt64 = 0
    /// The highest number.
    private var newest: UInt32?

    /// What has been delivered by now.
    var mark: Mark { Mark(count: count, newest: newest) }

    mutating func insert(_ xid: UInt32) {
        guard members[xid] == nil else { return }
        let place = Int(count % UInt64(Self.capacity))
        if place < ring.count {
            members[ring[place]] = nil
            ring[place] = xid
        } else {
            ring.append(xid)
        }
        members[xid] = count
        count += 1
        // Numbers begin again after the highest of 32 bits; the nearer way around tells which is later.
        if newest.map({ Int32(bitPattern: xid &- $0) > 0 }) ?? true { newest = xid }
    }

    /// Whether the snapshot does not see one of those delivered by `mark`: it counts it as running, or as not yet begun. Costs by
    /// what the snapshot counts as running, not by what was delivered.
    func contradict(_ snapshot: TransactionSnapshot, at mark: Mark) -> Bool {
        if let newest = mark.newest, !snapshot.sees(xid: newest) { return true }
        return snapshot.running.contains { number in
            members[UInt32(truncatingIfNeeded: number)].map { $0 < mark.count } ?? false
        }
    }
}
