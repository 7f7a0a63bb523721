package import SluiceCore

/// A semaphore that admits `width` callers at a time, in arrival order.
///
/// The queue has no bound of its own. Its length is at most the number of concurrent callers.
package actor AsyncSemaphore {
    private let width: Int
    private var inside = 0
    /// The waiters in the order of their numbers. A free slot resumes one with `true`. A deadline resumes one with `false`, and leaves nil
    /// behind.
    private var waiting: [CheckedContinuation<Bool, Never>?] = []
    /// The index of the first waiter in `waiting` that has not been admitted.
    private var first = 0
    /// The number of the first waiter in `waiting`.
    private var base = 0

    package init(width: Int) { self.width = width }

    /// Runs `body` once a slot is free and releases the slot afterwards.
    package func pass<R: Sendable>(_ body: @Sendable () async throws -> R) async rethrows -> R {
        if !isEntered() { _ = await place() { _ in nil } }
        defer { leave() }
        return try await body()
    }

    /// Runs `body` if a slot is free within a time, and releases the slot afterwards.
    ///
    /// - Returns: The result; nil if no slot was free.
    package func pass<R: Sendable>(
        within nanoseconds: UInt64, of environment: any Environment, _ body: @Sendable () async throws -> R
    ) async rethrows -> R? {
        let isInside =
            if isEntered() { true } else {
                await place { number in
                    environment.after(nanoseconds: nanoseconds) {
                        Task { await self.giveUp(number) }  // Unstructured because: a timer calls it.
                    }
                }
            }
        guard isInside else { return nil }
        defer { leave() }
        return try await body()
    }

    private func isEntered() -> Bool {
        guard inside < width else { return false }
        inside += 1
        return true
    }

    /// Waits for a slot.
    ///
    /// - Parameter timer: Starts the timer of a waiter.
    /// - Returns: `false` if the waiter gave up.
    private func place(_ timer: (_ number: Int) -> EnvironmentTimer?) async -> Bool {
        let timer = timer(base + waiting.count)
        let isAdmitted = await withCheckedContinuation { waiting.append($0) }
        timer?.cancel()
        return isAdmitted
    }

    private func giveUp(_ number: Int) {
        let index = number - base
        guard index >= first, let continuation = waiting[index] else { return }
        waiting[index] = nil
        continuation.resume(returning: false)
    }

    private func leave() {
        while first < waiting.count {
            let next = waiting[first]
            first += 1
            if first >= 1_024 { removeFirst() }
            // The slot passes directly to the next waiter, so `inside` stays the same.
            if let next { return next.resume(returning: true) }
        }
        removeFirst()
        inside -= 1
    }

    /// Removes the waiters before `first`.
    private func removeFirst() {
        base += first
        waiting.removeFirst(first)
        first = 0
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
