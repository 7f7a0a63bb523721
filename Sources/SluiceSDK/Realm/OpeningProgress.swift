import Synchronization

/// Those who want to hear how far an opening is.
final class OpeningProgress: Sendable {
    private struct State {
        var estimate = 0.0
        var listeners: [@Sendable (SyncSession.Progress) -> Void] = []
    }

    private let state = Mutex(State())

    /// - Parameter listener: called with what is known now, and after each step.
    func add(_ listener: @escaping @Sendable (SyncSession.Progress) -> Void) {
        let estimate = state.withLock { state in
            state.listeners.append(listener)
            return state.estimate
        }
        listener(.init(progressEstimate: estimate))
    }

    /// A step; one that would go back is none.
    func reached(_ estimate: Double) {
        let listeners = state.withLock { state -> [@Sendable (SyncSession.Progress) -> Void] in
            guard estimate > state.estimate else { return [] }
            state.estimate = min(1, estimate)
            return state.listeners
        }
        for listener in listeners { listener(.init(progressEstimate: min(1, estimate))) }
    }
}
