package import SluiceCore
import Synchronization

/// Wakes those who wait for something to have happened since they last looked, or for a count to have reached a value.
///
/// Looking and waiting are two steps, so a waiter hands in the count it saw: an event in between is not missed.
package final class Signal: Sendable {
    fileprivate struct State {
        var count: UInt64 = 0
        var nextID: UInt64 = 0
        var waiting: [UInt64: (value: UInt64, continuation: CheckedContinuation<Void, Never>)] = [:]
        /// No value that somebody waits for is lower.
        var lowest = UInt64.max
        /// Waits that have begun and not ended, so that a late timer leaves nothing behind.
        var begun: Set<UInt64> = []
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())
    private let environment: any Environment

    package init(environment: any Environment) { self.environment = environment }

    /// Numbers kept for waits: none when nobody waits.
    package var remembered: Int { state.withLock { $0.waiting.count + $0.begun.count + $0.cancelled.count } }

    /// How often `fire` was called, or what `reach` was called with.
    package var count: UInt64 { state.withLock { $0.count } }

    package func fire() { resume(state.withLock { $0.advance(to: $0.count + 1) }) }

    /// The count is at least `value` from now on.
    package func reach(_ value: UInt64) { resume(state.withLock { $0.advance(to: value) }) }

    private func resume(_ woken: [CheckedContinuation<Void, Never>]) {
        for continuation in woken { continuation.resume() }
    }

    /// Returns when `fire` has been called since `seen`, when the time is over, or when the task is cancelled.
    package func wait(after seen: UInt64, milliseconds: Int) async { await wait(until: seen + 1, milliseconds: milliseconds) }

    /// Returns when the count has reached `value`, when the time is over, or when the task is cancelled.
    package func wait(until value: UInt64, milliseconds: Int) async {
        if count >= value { return }
        let id = state.withLock { state in
            state.nextID += 1
            state.begun.insert(state.nextID)
            return state.nextID
        }
        let environment = self.environment
        // Unstructured because: the timer must not be awaited by the waiter that it wakes; it is cancelled below.
        let timer = Task { [weak self] in
            try? await environment.sleep(nanoseconds: UInt64(max(milliseconds, 0)) * 1_000_000)
            self?.wake(id)
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state in
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
        timer.cancel()
        state.withLock { state in
            state.begun.remove(id)
            state.cancelled.remove(id)
        }
    }

    private func wake(_ id: UInt64) {
        let continuation = state.withLock { state in
            guard let (_, continuation) = state.waiting.removeValue(forKey: id) else {
                if state.begun.contains(id) { state.cancelled.insert(id) }
                return nil as CheckedContinuation<Void, Never>?
            }
            return continuation
        }
        continuation?.resume()
    }
}

extension Signal.State {
    /// - Returns: who has waited for that; others sleep on.
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
