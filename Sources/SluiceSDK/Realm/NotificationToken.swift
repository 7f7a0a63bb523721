import Synchronization

/// Keeps an observation alive. The observation ends with `invalidate()` or when the token is released.
public final class NotificationToken: Sendable {
    private struct State {
        var isValid = true
        var ending: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    init() {}
    deinit { invalidate() }

    /// Ends the observation. A notification that is already running on another thread may still be delivered.
    public func invalidate() {
        let ending = state.withLock { state in
            defer { state = State(isValid: false) }
            return state.ending
        }
        ending?()
    }

    var isValid: Bool { state.withLock { $0.isValid } }

    /// Calls the body when the observation ends, or at once if it has ended.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = state.withLock { state in
            if state.isValid { state.ending = body }
            return !state.isValid
        }
        if hasEnded { body() }
    }
}
