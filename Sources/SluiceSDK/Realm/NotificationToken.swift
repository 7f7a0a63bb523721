import Synchronization

/// Keeps a notification coming; it ends with `invalidate()` or when the token goes away.
public final class NotificationToken: Sendable {
    private struct State {
        var isValid = true
        var ending: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    init() {}
    deinit { invalidate() }

    /// Ends the notification. One that is under way on another thread may still arrive.
    public func invalidate() {
        let ending = state.withLock { state in
            defer { state = State(isValid: false) }
            return state.ending
        }
        ending?()
    }

    var isValid: Bool { state.withLock { $0.isValid } }

    /// Calls the body when the notification ends, or now when it has.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = state.withLock { state in
            if state.isValid { state.ending = body }
            return !state.isValid
        }
        if hasEnded { body() }
    }
}
