import Dispatch
import Synchronization

extension SyncSession {
    /// A change of the connection state, as key-value observing reports it.
    public struct ConnectionChange: Sendable, Hashable {
        /// The state before; nil for a report of `.initial`.
        public let oldValue: ConnectionState?
        public let newValue: ConnectionState?
    }

    /// The connection state at the time of the call, then after each change, until the file closes.
    ///
    /// A reader that falls behind receives the newest state only.
    public var connectionStates: AsyncStream<ConnectionState> {
        let (states, continuation) = AsyncStream<ConnectionState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = connections.add(isInitial: true) { change in
            guard let state = change?.newValue else { return continuation.finish() }
            continuation.yield(state)
        }
        continuation.onTermination = { [weak connections] _ in connections?.remove(number) }
        return states
    }

    /// Calls the block after each change of the connection state, on a serial queue of the SDK, until the token is released.
    ///
    /// - Parameter options: `.initial` calls the block with the current state first.
    public func observe(
        _ keyPath: KeyPath<SyncSession, ConnectionState>, options: QueryBasedSync.ObservingOptions = [],
        changeHandler: @escaping @Sendable (SyncSession, ConnectionChange) -> Void
    ) -> NotificationToken {
        guard keyPath == \.connectionState else { throwRealmException("Only the connection state of a session can be observed.") }
        let token = NotificationToken()
        let number = connections.add(isInitial: options.contains(.initial)) { [weak self, weak token] change in
            guard let change else { return }
            // Both are loaded on the queue: the last release of a token removes its observer, which takes the lock.
            connectionQueue.async { [weak self, weak token] in
                if let self, let token, token.isValid { changeHandler(self, change) }
            }
        }
        token.whenEnded { [weak connections] in connections?.remove(number) }
        return token
    }
}

/// The queue of the blocks that observe a connection: serial, and separate from the threads that transfer data.
private let connectionQueue = DispatchQueue(label: "sluice.connection", qos: .utility)

/// The observers of a session's connection state. Safe to use on any thread.
final class ConnectionObservers: Sendable {
    /// Receives each change in order, and nil at the end. It runs under a lock and must not block.
    typealias Listener = @Sendable (SyncSession.ConnectionChange?) -> Void

    private struct State {
        var current = SyncSession.ConnectionState.disconnected
        var next: UInt64 = 1
        var listeners: [UInt64: Listener] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())

    /// - Parameter isInitial: `true` to pass the current state to the listener at once.
    /// - Returns: The number for `remove`.
    func add(isInitial: Bool, _ listener: @escaping Listener) -> UInt64 {
        state.withLock { state in
            if isInitial { listener(.init(oldValue: nil, newValue: state.current)) }
            guard !state.isClosed else {
                listener(nil)
                return 0
            }
            defer { state.next += 1 }
            state.listeners[state.next] = listener
            return state.next
        }
    }

    func remove(_ number: UInt64) {
        // The listener is released outside of the lock, since its end may call this again.
        _ = state.withLock { $0.listeners.removeValue(forKey: number) }
    }

    /// Tells the listeners a state, unless it is the one that they know.
    func tell(_ new: SyncSession.ConnectionState) {
        state.withLock { state in
            guard new != state.current else { return }
            let change = SyncSession.ConnectionChange(oldValue: state.current, newValue: new)
            state.current = new
            for (_, listener) in state.listeners { listener(change) }
        }
    }

    /// Ends all observations.
    func close() {
        let listeners = state.withLock { state in
            defer { (state.listeners, state.isClosed) = ([:], true) }
            return state.listeners.values
        }
        for listener in listeners { listener(nil) }
    }
}
