/// What a borrower receives: a connection, or leave to open one.
enum PoolGrant<Connection> {
    case use(Connection)
    case open
}

extension PoolGrant: Sendable where Connection: Sendable {}

/// Who gets which connection, decided without doing anything: first come, first served, at most `size` connections.
struct PoolStateMachine<Connection, Waiter> {
    typealias Grant = PoolGrant<Connection>

    enum Acquire {
        case grant(Grant)
        case wait
        case refuse
    }

    let size: Int
    private var idle: [Connection] = []
    /// Connections that are open or being opened.
    private(set) var taken = 0
    private var waiters: [(id: UInt64, waiter: Waiter, limit: Duration, deadline: ContinuousClock.Instant)] = []
    /// When somebody looks whose time is over; nil: nobody will. One look serves all, as most have what they want long before.
    private var nextLook: ContinuousClock.Instant?
    /// Waiters that were cancelled before they began to wait.
    private var cancelled: Set<UInt64> = []
    private(set) var isClosed = false

    init(size: Int) { self.size = size }

    var waiting: Int { waiters.count }

    mutating func acquire() -> Acquire {
        if isClosed { return .refuse }
        if let connection = idle.popLast() { return .grant(.use(connection)) }
        guard waiters.isEmpty, taken < size else { return .wait }
        taken += 1
        return .grant(.open)
    }

    /// Puts a waiter in line.
    enum Enqueue {
        /// `look`: `expire` is to be called then.
        case waits(look: ContinuousClock.Instant?)
        case grant(Grant)
        case cancelled
        case refuse
    }

    mutating func enqueue(_ id: UInt64, _ waiter: Waiter, within limit: Duration, now: ContinuousClock.Instant) -> Enqueue {
        if cancelled.remove(id) != nil { return .cancelled }
        switch acquire() {
        case .grant(let grant): return .grant(grant)
        case .refuse: return .refuse
        case .wait:
            let deadline = now + limit
            waiters.append((id, waiter, limit, deadline))
            if let nextLook, nextLook <= deadline { return .waits(look: nil) }
            nextLook = deadline
            return .waits(look: deadline)
        }
    }

    /// A connection comes back in good order.
    /// - Returns: the waiter that gets it; else, with `close`, that it is to be closed.
    mutating func release(_ connection: Connection) -> (waiter: Waiter?, close: Bool) {
        if !waiters.isEmpty { return (waiters.removeFirst().waiter, false) }
        if isClosed {
            taken -= 1
            return (nil, true)
        }
        idle.append(connection)
        return (nil, false)
    }

    /// A connection is gone, or could not be opened.
    /// - Returns: the waiter that may open one in its place.
    mutating func discard() -> Waiter? {
        if !waiters.isEmpty { return waiters.removeFirst().waiter }
        taken -= 1
        return nil
    }

    /// Takes out those whose time is over at `look`, a moment that has come.
    /// - Returns: them and how long they have waited; and when to look again, nil when nobody waits or somebody else looks.
    mutating func expire(
        at look: ContinuousClock.Instant
    ) -> (waiters: [(waiter: Waiter, limit: Duration)], next: ContinuousClock.Instant?) {
        let expired = waiters.filter { $0.deadline <= look }.map { ($0.waiter, $0.limit) }
        waiters.removeAll { $0.deadline <= look }
        guard look == nextLook else { return (expired, nil) }
        nextLook = waiters.map(\.deadline).min()
        return (expired, nextLook)
    }

    /// A waiter's task was cancelled, perhaps before it began to wait.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        if let index = waiters.firstIndex(where: { $0.id == id }) { return waiters.remove(at: index).waiter }
        cancelled.insert(id)
        return nil
    }

    /// Forgets a waiter that has what it wanted.
    mutating func forget(_ id: UInt64) { cancelled.remove(id) }

    /// - Returns: idle connections to close, and waiters to refuse.
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
