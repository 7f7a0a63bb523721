import Synchronization

/// Those who want to hear how far an opening is.
final class OpeningProgress: Sendable {
    private struct State {
        var estimate = 0.0
        var listeners: [@Sendable (SyncSession.Progress) -> Void] = []
    }

    /// Held while listeners are told, so that no two steps come in the wrong order.
    private let state = Mutex(State())

    /// - Parameter listener: called with what is known now, and after each step; it must only pass the news on.
    func add(_ listener: @escaping @Sendable (SyncSession.Progress) -> Void) {
        state.withLock { state in
            state.listeners.append(listener)
            listener(.init(progressEstimate: state.estimate))
        }
    }

    /// A step; one that would go back is none.
    func reached(_ estimate: Double) {
        state.withLock { state in
            guard estimate > state.estimate else { return }
            state.estimate = min(1, estimate)
            for listener in state.listeners { listener(.init(progressEstimate: state.estimate)) }
        }
    }
}
