import Synchronization

/// Does work in a task that exists only while there is some. An idle owner keeps no task: one would keep the memory of its deepest call.
///
/// The work is done once at a time. Requests that come while it is done are joined to one.
package final class OnDemand: Sendable {
    private struct State {
        /// Nil before `start` and after `close`.
        var work: (@Sendable () async -> Void)?
        var isAsked = false
        var isClosed = false
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// `true` while the work is done.
    package var isWorking: Bool { state.withLock { $0.task != nil } }

    /// Sets the work, which is released by `close`. It is done at once if it was asked for before.
    package func start(_ work: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.work = work
            begin(&state)
        }
    }

    /// Asks for the work, and returns at once. Work that is being done is done again afterwards.
    package func ask() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isAsked = true
            begin(&state)
        }
    }

    /// Lets no work begin any more.
    /// - Returns: The task of the work that is being done; nil for none.
    @discardableResult
    package func close() -> Task<Void, Never>? {
        state.withLock { state in
            (state.work, state.isAsked, state.isClosed) = (nil, false, true)
            return state.task
        }
    }

    /// Waits until the work that is being done has ended.
    package func ended() async { await state.withLock(\.task)?.value }

    private func begin(_ state: inout State) {
        guard state.task == nil, state.isAsked, state.work != nil else { return }
        // Detached, as other tasks copy the task-local values of their maker.
        state.task = Task.detached { await self.run() }  // Unstructured because: the caller never waits; `close` returns it.
    }

    private func run() async {
        while let work = next() { await work() }
    }

    private func next() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            guard state.isAsked, let work = state.work else {
                state.task = nil
                return nil
            }
            state.isAsked = false
            return work
        }
    }
}
