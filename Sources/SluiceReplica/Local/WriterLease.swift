import Dispatch
import Synchronization

/// A turn at the replica's only writer: asked for, held while its time has come, claimed by who asked, released.
///
/// ```
/// waiting ──hold──▶ held ──claim──▶ claimed ──release──▶ over
///    └──cancel──▶ over ◀──cancel, lapse──┘
/// ```
/// A lease that is held keeps everybody else from writing. One that is asked for with `lapses` is over when nobody claims it
/// soon, so that a busy actor cannot stop the others; who comes too late asks again.
package final class WriterLease: Sendable {
    private enum Phase { case waiting, held, claimed, over }

    private struct State {
        var phase = Phase.waiting
        /// Called once, when the phase is not `waiting` any more.
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

    /// On the writer queue: blocks its thread, which belongs to Dispatch and not to the cooperative pool.
    func hold() {
        guard move(from: .waiting, to: .held) else { return }
        tell()
        if lapses, released.wait(timeout: .now() + WriterLease.patience) == .timedOut, move(from: .held, to: .over) { return }
        if lapses, isOver { return }
        released.wait()
    }

    /// Takes the turn. - Returns: false when it is over.
    func claim() -> Bool { move(from: .held, to: .claimed) }

    /// Ends a claimed turn.
    func release() {
        if move(from: .claimed, to: .over) { released.signal() }
    }

    /// Gives the turn up, unless it is claimed; who waits for it hears of it at once.
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
        news?()
    }
}
