/// The bound of a producer's queue: who may hand records over, and who waits for those before it to be acknowledged.
///
/// Waiters are served in the order in which they came. A claim larger than the whole room is granted when the room is empty.
struct ProducerRoom {
    struct Waiter {
        var records: Int
        var bytes: Int
        /// Nanoseconds of the monotonic clock.
        var deadline: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    let recordLimit: Int
    let byteLimit: Int
    private(set) var records = 0
    private(set) var bytes = 0
    private(set) var waiters: [Waiter] = []
    /// Closed while the client is being replaced: every claim waits.
    var isClosed = false

    init(recordLimit: Int, byteLimit: Int) {
        self.recordLimit = recordLimit
        self.byteLimit = byteLimit
    }

    /// Takes room without waiting, unless there is none or somebody else waits already.
    mutating func claim(records: Int, bytes: Int) -> Bool {
        guard waiters.isEmpty, fits(records: records, bytes: bytes) else { return false }
        take(records: records, bytes: bytes)
        return true
    }

    mutating func wait(_ waiter: Waiter) { waiters.append(waiter) }

    /// Gives room back.
    /// - Returns: the waiters who now have theirs.
    mutating func release(records: Int, bytes: Int) -> [Waiter] {
        self.records = max(0, self.records - records)
        self.bytes = max(0, self.bytes - bytes)
        return admit()
    }

    /// - Returns: the waiters who fit, their room taken.
    mutating func admit() -> [Waiter] {
        var served = 0
        while served < waiters.count, fits(records: waiters[served].records, bytes: waiters[served].bytes) {
            take(records: waiters[served].records, bytes: waiters[served].bytes)
            served += 1
        }
        guard served > 0 else { return [] }
        defer { waiters.removeFirst(served) }
        return Array(waiters[..<served])
    }

    /// - Returns: the waiters whose time is over, no longer waiting.
    mutating func expire(now: UInt64) -> [Waiter] {
        guard waiters.contains(where: { $0.deadline <= now }) else { return [] }
        let expired = waiters.filter { $0.deadline <= now }
        waiters.removeAll { $0.deadline <= now }
        return expired
    }

    /// The same room with nobody in it, and the same waiters.
    func emptied() -> ProducerRoom {
        var room = ProducerRoom(recordLimit: recordLimit, byteLimit: byteLimit)
        room.waiters = waiters
        return room
    }

    private func fits(records: Int, bytes: Int) -> Bool {
        guard !isClosed else { return false }
        if self.records == 0 { return true }
        return self.records + records <= recordLimit && self.bytes + bytes <= byteLimit
    }

    private mutating func take(records: Int, bytes: Int) {
        self.records += records
        self.bytes += bytes
    }
}
