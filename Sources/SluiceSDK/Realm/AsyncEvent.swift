import Synchronization

/// A one-shot event with one waiting task, in any order.
final class AsyncEvent: Sendable {
    private enum State {
        case none
        case come
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.none)

    func come() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .come }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        waiting?.resume()
    }

    func wait(_ continuation: CheckedContinuation<Void, Never>) {
        let hasCome = state.withLock { state in
            if case .come = state { return true }
            state = .waiting(continuation)
            return false
        }
        if hasCome { continuation.resume() }
    }
}
