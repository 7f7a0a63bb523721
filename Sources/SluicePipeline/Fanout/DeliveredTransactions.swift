import SluiceCore

/// The transactions delivered last, by number.
/// A snapshot that misses one of them was taken between its commit record and its visibility. The hand-over is exact only if that
/// snapshot is taken again.
struct DeliveredTransactions {
    /// The number of transactions kept, far more than can commit in that instant. The oldest is dropped first.
    static let capacity = 65_536

    /// The extent of the delivery at one time.
    struct Mark {
        fileprivate let count: UInt64
        fileprivate let newest: UInt32?
    }

    private var ring: [UInt32] = []
    /// The number of transactions delivered before each one.
    private var members: [UInt32: UInt64] = [:]
    private var count: UInt64 = 0
    /// The highest transaction number.
    private var newest: UInt32?

    /// The extent of the delivery now.
    var mark: Mark { Mark(count: count, newest: newest) }

    mutating func insert(_ xid: UInt32) {
        // The records of a transaction follow each other, so most calls end here.
        guard members[xid] == nil else { return }
        let place = Int(count % UInt64(Self.capacity))
        if place < ring.count {
            // The ring is full: the oldest transaction makes room.
            members[ring[place]] = nil
            ring[place] = xid
        } else {
            ring.append(xid)
        }
        members[xid] = count
        count += 1
        // Transaction numbers wrap at 32 bits. The shorter way around the circle decides which one is later.
        if newest.map({ Int32(bitPattern: xid &- $0) > 0 }) ?? true { newest = xid }
    }

    /// Returns `true` if the snapshot misses a transaction delivered by `mark`, as running or not yet begun.
    /// The cost grows with the number of running transactions in the snapshot, not with the number delivered.
    func contradict(_ snapshot: TransactionSnapshot, at mark: Mark) -> Bool {
        if let newest = mark.newest, !snapshot.sees(xid: newest) { return true }
        return snapshot.running.contains { number in
            members[UInt32(truncatingIfNeeded: number)].map { $0 < mark.count } ?? false
        }
    }
}
