import Synchronization

/// The versions that a client has confirmed, on their way from its connection to its views. The connection hands them over without waiting.
final class BridgeConfirmations: Sendable {
    private struct State {
        var version: UInt64 = 0
        /// The version that the views have taken.
        var taken: UInt64 = 0
        var isAwaited = false
    }

    private let state = Mutex(State())

    /// Adds a version. A smaller one changes nothing.
    /// - Returns: `true` if the views await it. Otherwise they take it before their next message.
    func add(_ version: UInt64) -> Bool {
        state.withLock { state in
            state.version = max(state.version, version)
            return state.isAwaited
        }
    }

    /// Returns the newest version; nil if the views have taken it and await none.
    func take() -> UInt64? {
        state.withLock { state in
            // The session may repeat a compensating write that the client has confirmed before.
            guard state.version > state.taken || (state.isAwaited && state.version > 0) else { return nil }
            state.taken = state.version
            return state.version
        }
    }

    /// Begins or ends the wait for the confirmation of compensating writes.
    func awaits(_ isAwaited: Bool) { state.withLock { $0.isAwaited = isAwaited } }
}
