/// The bound of a producer's queue: grants room to senders, and queues those that must wait for acknowledgements.
///
/// Waiters are served in the order of arrival. A claim larger than the whole room is granted when the room is empty.
struct ProducerRoom {
    struct Waiter {
        var records: Int
        var bytes: Int
        /// The deadline, in nanoseconds of the monotonic clock.
        var deadline: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    let recordLimit: Int
    let byteLimit: Int
    private(set) var records = 0
    private(set) var bytes = 0
    private(set) var waiters: [Waiter] = []
    /// `true` while the client is being replaced: every claim waits.
    var isClosed = false

    init(recordLimit: Int, byteLimit: Int) {
        self.recordLimit = recordLimit
        self.byteLimit = byteLimit
    }

    /// Claims room without waiting. Returns `false` if none is free or another sender waits already.
    mutating func claim(records: Int, bytes: Int) -> Bool {
        guard waiters.isEmpty, fits(records: records, bytes: bytes) else { return false }
        take(records: records, bytes: bytes)
        return true
    }

    mutating func wait(_ waiter: Waiter) { waiters.append(waiter) }

    /// Releases room.
    ///
    /// - Returns: The waiters that have received theirs.
    mutating func release(records: Int, bytes: Int) -> [Waiter] {
        self.records = max(0, self.records - records)
        self.bytes = max(0, self.bytes - bytes)
        return admit()
    }

    /// Claims room for the first waiters, as many as fit.
    ///
    /// - Returns: The waiters that have received theirs.
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

    /// Removes the waiters whose deadline has passed, and returns them.
    mutating func expire(now: UInt64) -> [Waiter] {
        guard waiters.contains(where: { $0.deadline <= now }) else { return [] }
        let expired = waiters.filter { $0.deadline <= now }
        waiters.removeAll { $0.deadline <= now }
        return expired
    }

    /// Returns the same room, open and without claims, with the same waiters.
    func emptied() -> ProducerRoom {
        var room = ProducerRoom(recordLimit: recordLimit, byteLimit: byteLimit)
        room.waiters = waiters
        return room
    }

    private func fits(records: Int, bytes: Int) -> Bool {
        guard !isClosed else { return false }
        // Otherwise a claim beyond the limits would wait forever.
        if self.records == 0 { return true }
        return self.records + records <= recordLimit && self.bytes + bytes <= byteLimit
    }

    private mutating func take(records: Int, bytes: Int) {
        self.records += records
        self.bytes += bytes
    }
}
