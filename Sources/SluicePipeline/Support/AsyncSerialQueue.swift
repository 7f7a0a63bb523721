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
