/// The time after which a wait of a test counts as lost. Slow machines need some of it, no wait that works needs all.
package let patience: Duration = .seconds(180)

/// Checks a condition until it holds. It is for state of PostgreSQL, a broker, a file or another process, which send this process no
/// event. State of this process is a `Watched` instead.
///
/// - Returns: `false` if the condition does not hold in time.
/// - Throws: What the condition throws, and `CancellationError`.
package func eventually(
    within time: Duration = patience, every interval: Duration = .milliseconds(10), isolation: isolated (any Actor)? = #isolation,
    _ isMet: () async throws -> Bool
) async throws -> Bool {
    try await found(within: time, every: interval) { try await isMet() ? true : nil } ?? false
}

/// Looks until something is found, as `eventually` does.
///
/// - Returns: What was found; nil if there is nothing in time.
package func found<Found>(
    within time: Duration = patience, every interval: Duration = .milliseconds(10), isolation: isolated (any Actor)? = #isolation,
    _ look: () async throws -> Found?
) async throws -> Found? {
    let end = ContinuousClock.now + time
    while true {
        if let found = try await look() { return found }
        guard ContinuousClock.now < end else { return nil }
        try await Task.sleep(for: interval)
    }
}

/// Rings once the time is over, unless the task is cancelled before. It bounds a wait that has no deadline of its own.
package func alarm(after time: Duration = patience, _ ring: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task {  // Unstructured because: the caller waits for another event, and cancels this once it has come.
        guard (try? await Task.sleep(for: time)) != nil else { return }
        ring()
    }
}

/// Waits for the cancellation of the task.
///
/// - Throws: `CancellationError`, or `NotCancelled` if none comes in time.
package func untilCancelled() async throws {
    try await Task.sleep(for: patience)
    throw NotCancelled()
}

package struct NotCancelled: Error {}
