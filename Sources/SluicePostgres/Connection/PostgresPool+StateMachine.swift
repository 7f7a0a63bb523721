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
    private var waiters: [(id: UInt64, waiter: Waiter)] = []
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
    /// - Returns: what it gets at once; nil when it waits. False when it was cancelled or the pool closed meanwhile.
    enum Enqueue {
        case waits
        case grant(Grant)
        case cancelled
        case refuse
    }

    mutating func enqueue(_ id: UInt64, _ waiter: Waiter) -> Enqueue {
        if cancelled.remove(id) != nil { return .cancelled }
        switch acquire() {
        case .grant(let grant): return .grant(grant)
        case .refuse: return .refuse
        case .wait:
            waiters.append((id, waiter))
            return .waits
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

    /// A waiter's time is over. - Returns: the waiter, if it still waits.
    mutating func expire(_ id: UInt64) -> Waiter? {
        guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
        return waiters.remove(at: index).waiter
    }

    /// A waiter's task was cancelled, perhaps before it began to wait.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        if let waiter = expire(id) { return waiter }
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
