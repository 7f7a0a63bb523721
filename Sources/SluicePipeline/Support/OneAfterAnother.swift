/// Runs what suspends one after another, in the order of the calls: each looks at what the one before left.
///
/// Nobody is refused: those who wait are as many as those who call at a time, which for a gateway are its sessions at most.
package actor OneAfterAnother {
    private var last: Task<Void, Never>?

    package init() {}

    /// The body ends also when whoever waits for it is cancelled.
    package func run<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
        let before = last
        // Unstructured because: the next one waits for it, which may belong to somebody else.
        let task = Task {
            await before?.value
            return try await body()
        }
        // Unstructured because: it only says when `task` is over.
        last = Task { _ = try? await task.value }
        return try await task.value
    }
}
