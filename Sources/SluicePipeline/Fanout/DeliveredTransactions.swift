import SluiceCore

/// The transactions delivered last, by number: a snapshot that does not see one of them was taken in the instant between
/// its commit record and its visibility, and has to be taken again (DESIGN section 4, exact hand-over).
struct DeliveredTransactions {
    /// More than can commit in that instant by far; the oldest makes room.
    static let capacity = 65_536

    private var ring: [UInt32] = []
    private var next = 0
    private var members: Set<UInt32> = []

    mutating func insert(_ xid: UInt32) {
        guard members.insert(xid).inserted else { return }
        if ring.count < Self.capacity {
            ring.append(xid)
            return
        }
        members.remove(ring[next])
        ring[next] = xid
        next = (next + 1) % Self.capacity
    }

    /// Whether the snapshot does not see one of them: it counts it as running, or as not yet begun.
    func contradict(_ snapshot: TransactionSnapshot) -> Bool { ring.contains { !snapshot.sees(xid: $0) } }
}
