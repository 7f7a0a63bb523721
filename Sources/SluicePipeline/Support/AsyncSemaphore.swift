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
