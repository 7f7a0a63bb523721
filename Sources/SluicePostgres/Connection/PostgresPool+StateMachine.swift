/// The grant for a borrower: a connection, or the permission to open one.
enum PoolGrant<Connection> {
    case use(Connection)
    case open
}

extension PoolGrant: Sendable where Connection: Sendable {}

/// The state machine of a `PostgresPool`, without effects: first come, first served, at most `size` connections.
struct PoolStateMachine<Connection, Waiter> {
    typealias Grant = PoolGrant<Connection>

    enum Acquire {
        case grant(Grant)
        case wait
        case refuse
    }

    let size: Int
    private var idle: [Connection] = []
    /// The number of connections that are open or being opened.
    private(set) var taken = 0
    private var waiters: [(id: UInt64, waiter: Waiter, limit: Duration, deadline: ContinuousClock.Instant)] = []
    /// The time of the next `expire`; nil if none is scheduled. One timer serves all, because most waiters are served long before.
    private var nextLook: ContinuousClock.Instant?
    /// Waiters that were cancelled before they began to wait.
    private var cancelled: Set<UInt64> = []
    private(set) var isClosed = false

    init(size: Int) { self.size = size }

    var waiting: Int { waiters.count }

    mutating func acquire() -> Acquire {
        if isClosed { return .refuse }
        if let connection = idle.popLast() { return .grant(.use(connection)) }
        // A new borrower does not overtake waiters.
        guard waiters.isEmpty, taken < size else { return .wait }
        taken += 1
        return .grant(.open)
    }

    /// The result of adding a waiter to the line.
    enum Enqueue {
        /// The waiter is in line. Unless `look` is nil, the caller must call `expire` at that time.
        case waits(look: ContinuousClock.Instant?)
        case grant(Grant)
        case cancelled
        case refuse
    }

    /// Adds a waiter to the line, unless a connection has become free since `acquire`.
    mutating func enqueue(_ id: UInt64, _ waiter: Waiter, within limit: Duration, now: ContinuousClock.Instant) -> Enqueue {
        if cancelled.remove(id) != nil { return .cancelled }
        switch acquire() {
        case .grant(let grant): return .grant(grant)
        case .refuse: return .refuse
        case .wait:
            let deadline = now + limit
            waiters.append((id, waiter, limit, deadline))
            // The scheduled call is early enough for this waiter, too.
            if let nextLook, nextLook <= deadline { return .waits(look: nil) }
            nextLook = deadline
            return .waits(look: deadline)
        }
    }

    /// Takes back a connection in good order.
    ///
    /// - Returns: The waiter that receives it. Without a waiter, `close` is `true` if the caller must close the connection.
    mutating func release(_ connection: Connection) -> (waiter: Waiter?, close: Bool) {
        // The connection goes to the first waiter directly and remains taken.
        if !waiters.isEmpty { return (waiters.removeFirst().waiter, false) }
        if isClosed {
            taken -= 1
            return (nil, true)
        }
        idle.append(connection)
        return (nil, false)
    }

    /// Records that a connection was lost or could not be opened.
    ///
    /// - Returns: The waiter that may open one in its place.
    mutating func discard() -> Waiter? {
        // The waiter opens a connection in its place, so the number stays the same.
        if !waiters.isEmpty { return waiters.removeFirst().waiter }
        taken -= 1
        return nil
    }

    /// Removes the waiters whose deadline is not after `look`, the current time.
    ///
    /// - Returns: The waiters with their limits, and the time of the next call. It is nil if no waiter is left or another call is
    ///   scheduled.
    mutating func expire(
        at look: ContinuousClock.Instant
    ) -> (waiters: [(waiter: Waiter, limit: Duration)], next: ContinuousClock.Instant?) {
        let expired = waiters.filter { $0.deadline <= look }.map { ($0.waiter, $0.limit) }
        waiters.removeAll { $0.deadline <= look }
        // An earlier call has been scheduled since and takes care of the rest.
        guard look == nextLook else { return (expired, nil) }
        nextLook = waiters.map(\.deadline).min()
        return (expired, nextLook)
    }

    /// Removes a waiter whose task was cancelled, possibly before it began to wait.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        if let index = waiters.firstIndex(where: { $0.id == id }) { return waiters.remove(at: index).waiter }
        cancelled.insert(id)
        return nil
    }

    /// Forgets the cancellation of a waiter that has been served.
    mutating func forget(_ id: UInt64) { cancelled.remove(id) }

    /// Closes the pool.
    ///
    /// - Returns: Idle connections to close, and waiters to refuse.
    mutating func close() -> (connections: [Connection], waiters: [Waiter]) {
        isClosed = true
        defer {
            taken -= idle.count
            idle.removeAll()
            waiters.removeAll()
        }
        return (idle, waiters.map(\.waiter))
    }
}
