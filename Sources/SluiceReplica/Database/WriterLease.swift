import Dispatch
import Synchronization

/// A lease on the replica's only writer, from the request to the release.
///
/// ```
/// waiting ──hold──▶ held ──claim──▶ claimed ──release──▶ over
///    └──cancel──▶ over ◀──cancel, lapse──┘
/// ```
/// A held lease blocks all other writes. With `lapses`, it expires unless it is claimed within 100 ms, so that a busy actor cannot
/// block the other writers. A caller whose claim fails requests a new lease.
package final class WriterLease: Sendable {
    private enum Phase { case waiting, held, claimed, over }

    private struct State {
        var phase = Phase.waiting
        /// Called once, when the phase leaves `waiting`.
        var news: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let released = DispatchSemaphore(value: 0)
    private let lapses: Bool
    private static let patience = DispatchTimeInterval.milliseconds(100)

    init(lapses: Bool, news: @escaping @Sendable () -> Void) {
        self.lapses = lapses
        state = Mutex(State(news: news))
    }

    /// Holds the lease until it ends. Runs on the writer queue and blocks its thread, a Dispatch thread outside the cooperative pool.
    func hold() {
        guard move(from: .waiting, to: .held) else { return }
        tell()
        if lapses, released.wait(timeout: .now() + WriterLease.patience) == .timedOut, move(from: .held, to: .over) { return }
        if lapses, isOver { return }
        // A claimed lease does not expire. A release before this wait is not lost: the semaphore counts it.
        released.wait()
    }

    /// Claims a held lease. - Returns: `false` unless the lease is held.
    func claim() -> Bool { move(from: .held, to: .claimed) }

    /// Ends a claimed lease.
    func release() {
        if move(from: .claimed, to: .over) { released.signal() }
    }

    /// Ends the lease unless it is claimed. If it is still waiting, its callback runs at once.
    package func cancel() {
        if move(from: .waiting, to: .over) {
            tell()
        } else if move(from: .held, to: .over) {
            released.signal()
        }
    }

    private var isOver: Bool { state.withLock { $0.phase == .over } }

    private func move(from: Phase, to: Phase) -> Bool {
        state.withLock { state in
            guard state.phase == from else { return false }
            state.phase = to
            return true
        }
    }

    private func tell() {
        let news = state.withLock { state in
            defer { state.news = nil }
            return state.news
        }
        // Outside the lock, so that the callback may use the lease.
        news?()
    }
}
