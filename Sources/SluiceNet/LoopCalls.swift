import NIOCore
import Synchronization

/// Short calls for the connections of one event loop, in order. All that wait take one task of the loop.
///
/// A task of the loop and its wake cost more than a short call, and one change is a call for each of a thousand connections.
final class LoopCalls: Sendable {
    typealias Call = @Sendable () -> Void

    private struct State {
        var waiting: [Call] = []
        /// The room of the calls that ran last.
        var room: [Call] = []
        /// `true` while the loop has a task for the calls that wait.
        var isScheduled = false
    }

    /// The calls for which room is kept.
    private static let mostRoom = 4_096

    private let loop: any EventLoop
    private let state = Mutex(State())

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Makes a call soon on the event loop, behind the earlier ones. The callers bound the calls that wait.
    func add(_ call: @escaping Call) {
        let isFirst = state.withLock { state in
            state.waiting.append(call)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { loop.execute { self.run() } }
    }

    /// Makes the calls that wait. Those that come meanwhile have a task of their own, so that other tasks of the loop come between.
    private func run() {
        var calls = state.withLock { state in
            let calls = state.waiting
            state.waiting = state.room
            (state.room, state.isScheduled) = ([], false)
            return calls
        }
        for call in calls { call() }
        calls.removeAll(keepingCapacity: calls.capacity <= Self.mostRoom)
        state.withLock { $0.room = calls }
    }
}
