import Synchronization

/// State of a test or of its doubles. The change that meets a condition wakes those that wait for it.
package final class Watched<State: Sendable>: Sendable {
    private struct Waiter {
        let id: UInt64
        let isMet: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct Inside {
        var state: State
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
    }

    private let inside: Mutex<Inside>

    package init(_ state: State) { inside = Mutex(Inside(state: state)) }

    package var value: State { inside.withLock { $0.state } }

    /// Changes the state, and wakes the waiters whose condition holds then.
    @discardableResult package func change<R: Sendable>(_ body: (inout State) throws -> R) rethrows -> R {
        let (result, woken) = try inside.withLock { inside in
            let result = try body(&inside.state)
            let state = inside.state
            let woken = inside.waiters.filter { $0.isMet(state) }
            if !woken.isEmpty { inside.waiters.removeAll { waiter in woken.contains { $0.id == waiter.id } } }
            return (result, woken.map(\.continuation))
        }
        for continuation in woken { continuation.resume(returning: true) }
        return result
    }

    /// Waits until the condition holds.
    ///
    /// - Parameter isMet: Called under the state's lock, so it must not use this object.
    /// - Returns: `false` if it does not hold in time.
    @discardableResult package func until(within time: Duration = patience, _ isMet: @escaping @Sendable (State) -> Bool) async -> Bool {
        let id = inside.withLock { inside in
            inside.nextID += 1
            return inside.nextID
        }
        let alarm = alarm(after: time) { self.giveUp(id) }
        defer { alarm.cancel() }
        return await withCheckedContinuation { continuation in
            let isMetNow = inside.withLock { inside in
                if isMet(inside.state) { return true }
                inside.waiters.append(Waiter(id: id, isMet: isMet, continuation: continuation))
                return false
            }
            if isMetNow { continuation.resume(returning: true) }
        }
    }

    private func giveUp(_ id: UInt64) {
        let late = inside.withLock { inside in
            let index = inside.waiters.firstIndex { $0.id == id }
            return index.map { inside.waiters.remove(at: $0).continuation }
        }
        late?.resume(returning: false)
    }
}
