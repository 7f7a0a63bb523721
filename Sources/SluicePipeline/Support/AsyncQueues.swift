/// A semaphore that admits `width` callers at a time, in arrival order.
///
/// The queue has no bound of its own. Its length is at most the number of concurrent callers.
package actor AsyncSemaphore {
    private let width: Int
    private var inside = 0
    private var waiting: [CheckedContinuation<Void, Never>] = []
    /// The index of the first waiter in `waiting` that has not been admitted.
    private var first = 0

    package init(width: Int) { self.width = width }

    /// Runs `body` once a slot is free and releases the slot afterwards.
    package func pass<R: Sendable>(_ body: @Sendable () async throws -> R) async rethrows -> R {
        await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async {
        if inside < width {
            inside += 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func leave() {
        guard first < waiting.count else {
            waiting.removeAll()
            first = 0
            inside -= 1
            return
        }
        // The slot passes directly to the next waiter, so `inside` stays the same.
        let next = waiting[first]
        first += 1
        if first >= 1_024 {
            waiting.removeFirst(first)
            first = 0
        }
        next.resume()
    }
}

/// Runs asynchronous bodies one at a time, in call order. Each body sees the effects of the previous one.
///
/// The queue has no bound of its own. Its length is at most the number of concurrent callers, which in a gateway is the number of
/// sessions.
package actor AsyncSerialQueue {
    private var last: Task<Void, Never>?

    package init() {}

    /// Runs `body` after all earlier bodies. The body runs to its end even if the caller is cancelled.
    package func run<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        let before = last
        let task = Task {  // Unstructured because: the next body waits for this task, and that body may belong to another caller.
            await before?.value
            return try await body()
        }
        last = Task { _ = try? await task.value }  // Unstructured because: it only reports the end of `task`.
        return try await task.value
    }
}
