import Synchronization

/// The progress listeners of an asynchronous open.
final class OpeningProgress: Sendable {
    private struct State {
        var estimate = 0.0
        var listeners: [@Sendable (SyncSession.Progress) -> Void] = []
    }

    /// Held during the calls of listeners, so that steps arrive in order.
    private let state = Mutex(State())

    /// Adds a listener.
    /// - Parameter listener: Receives the current estimate at once, then each step. It runs under a lock and must not block.
    func add(_ listener: @escaping @Sendable (SyncSession.Progress) -> Void) {
        state.withLock { state in
            state.listeners.append(listener)
            listener(.init(progressEstimate: state.estimate))
        }
    }

    /// Reports a step. A lower estimate than the last one is ignored.
    func reached(_ estimate: Double) {
        state.withLock { state in
            guard estimate > state.estimate else { return }
            state.estimate = min(1, estimate)
            for listener in state.listeners { listener(.init(progressEstimate: state.estimate)) }
        }
    }
}
