package import SluiceCore
import Synchronization

/// Wakes waiters once an event has fired since their last look, or once a count has reached a value.
///
/// Looking and waiting are two steps. A waiter passes the count that it saw, so it cannot miss an event in between.
package final class AsyncEvent: Sendable {
    fileprivate struct State {
        var count: UInt64 = 0
        var nextID: UInt64 = 0
        var waiting: [UInt64: (value: UInt64, continuation: CheckedContinuation<Void, Never>)] = [:]
        /// A lower bound of the values that are waited for.
        var lowest = UInt64.max
        /// Waits that have begun and not ended, so that a late timer leaves no state behind.
        var begun: Set<UInt64> = []
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let environment: any Environment

    package init(environment: any Environment) { self.environment = environment }

    /// The number of entries kept for waits; 0 without waiters.
    package var remembered: Int { state.withLock { $0.waiting.count + $0.begun.count + $0.cancelled.count } }

    /// The number of calls of `fire`, or the highest value passed to `reach`.
    package var count: UInt64 { state.withLock { $0.count } }

    /// Increments the count and wakes its waiters.
    package func fire() { resume(state.withLock { $0.advance(to: $0.count == .max ? .max : $0.count + 1) }) }

    /// Raises the count to at least `value`.
    package func reach(_ value: UInt64) { resume(state.withLock { $0.advance(to: value) }) }

    private func resume(_ woken: [CheckedContinuation<Void, Never>]) {
        for continuation in woken { continuation.resume() }
    }

    /// Waits until `fire` is called after `seen`, the time has passed, or the task is cancelled.
    package func wait(after seen: UInt64, milliseconds: Int) async {
        await wait(until: seen == .max ? .max : seen + 1, milliseconds: milliseconds)
    }

    /// Waits until the count has reached `value`, the time has passed, or the task is cancelled.
    package func wait(until value: UInt64, milliseconds: Int) async {
        if count >= value { return }
        let id = begin()
        let environment = self.environment
        let timer = Task { [weak self] in  // Unstructured because: the waiter that it wakes must not await it; cancelled below.
            try? await environment.sleep(nanoseconds: UInt64(max(milliseconds, 0)) * 1_000_000)
            self?.wake(id)
        }
        await wait(id, until: value)
        timer.cancel()
    }

    /// Waits until the count has reached `value`, or the task is cancelled. For events whose source has a deadline: a timer for each of
    /// many waits would cost more than the wait.
    package func wait(until value: UInt64) async {
        if count < value { await wait(begin(), until: value) }
    }

    private func begin() -> UInt64 {
        state.withLock { state in
            state.nextID += 1
            state.begun.insert(state.nextID)
            return state.nextID
        }
    }

    private func wait(_ id: UInt64, until value: UInt64) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state in
                    // The check and the registration share one lock, so an event or a cancellation between them cannot be missed.
                    if state.count >= value || state.cancelled.remove(id) != nil { return true }
                    state.waiting[id] = (value, continuation)
                    state.lowest = min(state.lowest, value)
                    return false
                }
                if now { continuation.resume() }
            }
        } onCancel: {
            wake(id)
        }
        state.withLock { state in
            state.begun.remove(id)
            state.cancelled.remove(id)
        }
    }

    private func wake(_ id: UInt64) {
        let continuation = state.withLock { state in
            guard let (_, continuation) = state.waiting.removeValue(forKey: id) else {
                // The waiter has not registered yet: leave a note so that it returns at once.
                if state.begun.contains(id) { state.cancelled.insert(id) }
                return nil as CheckedContinuation<Void, Never>?
            }
            return continuation
        }
        continuation?.resume()
    }
}

extension AsyncEvent.State {
    /// Raises the count.
    /// - Returns: the continuations whose value is reached; the others stay registered.
    fileprivate mutating func advance(to value: UInt64) -> [CheckedContinuation<Void, Never>] {
        count = max(count, value)
        guard count >= lowest else { return [] }
        var woken: [CheckedContinuation<Void, Never>] = []
        lowest = .max
        for (id, wait) in waiting {
            if wait.value <= count {
                woken.append(wait.continuation)
                waiting[id] = nil
            } else {
                lowest = min(lowest, wait.value)
            }
        }
        return woken
    }
}
