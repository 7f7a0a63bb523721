import DequeModule
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// A serial executor that a plain call can enter while it is idle.
///
/// A call of an actor from outside needs a task, a job and often another thread, which costs more than to handle most messages of a
/// connection. The thread that has a message enters the executor and handles it at once. If the executor is not idle, a task handles it.
package final class EnterableExecutor: SerialExecutor {
    private struct State {
        /// Jobs that wait, in order.
        var jobs: Deque<UnownedJob> = []
        /// `true` while a call or a job runs, or jobs wait for a thread.
        var isTaken = false
        /// The thread that runs a call or a job; nil for none.
        var thread: pthread_t?

        mutating func free() { (isTaken, thread) = (false, nil) }
    }

    private let state = Mutex(State())

    package init() {}

    /// Calls `body` if the executor is idle. Jobs that come meanwhile run afterwards, on another thread.
    /// - Returns: Nil if the executor is not idle. `body` is not called then.
    package func enterIfIdle<Result>(_ body: () throws -> Result) rethrows -> Result? {
        let isEntered = state.withLock { state in
            guard !state.isTaken else { return false }
            (state.isTaken, state.thread) = (true, pthread_self())
            return true
        }
        guard isEntered else { return nil }
        defer { if !leave() { runLater() } }
        return try body()
    }

    /// Ends a call.
    /// - Returns: `false` if jobs wait.
    private func leave() -> Bool {
        state.withLock { state in
            state.thread = nil
            if state.jobs.isEmpty { state.free() }
            return !state.isTaken
        }
    }

    private func runLater() {
        Task.detached { self.run() }  // Unstructured because: a job has no caller that waits. It ends with the last job.
    }

    /// Runs the jobs until none waits.
    private func run() {
        state.withLock { $0.thread = pthread_self() }
        while let job = next() { unsafe job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    private func next() -> UnownedJob? {
        state.withLock { state in
            if let job = state.jobs.popFirst() { return job }
            state.free()
            return nil
        }
    }

    // MARK: SerialExecutor

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLock { state in
            state.jobs.append(job)
            defer { state.isTaken = true }
            return !state.isTaken
        }
        if isFirst { runLater() }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    package func isIsolatingCurrentContext() -> Bool? {
        let thread = pthread_self()
        return state.withLock { $0.thread == thread }
    }
}
