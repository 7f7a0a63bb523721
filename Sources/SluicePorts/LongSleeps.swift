import SluiceCore
import Synchronization

/// The environment of a server, whose long sleeps share one timer.
///
/// Most of them are deadlines that are cancelled early. A cancelled `Task.sleep` keeps its timer until its time, several hundred bytes for
/// each call with a deadline. Here a cancelled sleep keeps nothing.
package struct ServerEnvironment: Environment {
    private let system = SystemEnvironment()
    private let sleeps = LongSleeps()

    package init() {}

    package func wallMilliseconds() -> Int64 { system.wallMilliseconds() }

    package func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }

    package func random() -> UInt64 { system.random() }

    package func sleep(nanoseconds: UInt64) async throws {
        guard nanoseconds >= LongSleeps.shortest else { return try await system.sleep(nanoseconds: nanoseconds) }
        let (end, isBeyond) = monotonicNanoseconds().addingReportingOverflow(nanoseconds)
        try await sleeps.sleep(until: isBeyond ? .max : end)
    }
}

/// Sleeps that share one timer.
final class LongSleeps: Sendable {
    /// The shortest time. The timer is set to no later time, so that a new sleep never ends before it.
    static let shortest: UInt64 = 10_000_000_000

    /// The shortest time between two looks, so that many sleeps with almost the same end cost one look.
    static let pause: UInt64 = 50_000_000

    private struct State {
        var waiting: [UInt64: (deadline: UInt64, continuation: CheckedContinuation<Void, Never>)] = [:]
        /// Sleeps that were cancelled before they waited.
        var cancelled: Set<UInt64> = []
        var lastID: UInt64 = 0
        var isRunning = false
    }

    private let state = Mutex(State())

    /// The number of sleeps that are remembered.
    var count: Int { state.withLock { $0.waiting.count + $0.cancelled.count } }

    /// Sleeps until a time of the monotonic clock, at least `shortest` from now.
    /// - Throws: `CancellationError`.
    func sleep(until deadline: UInt64) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isCancelled, starts) = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return (true, false) }
                    state.waiting[id] = (deadline, continuation)
                    defer { state.isRunning = true }
                    return (false, !state.isRunning)
                }
                if isCancelled { continuation.resume() }
                // Unstructured because: it serves the sleeps of all tasks, and ends with the last of them.
                if starts { Task.detached { await self.run() } }
            }
        } onCancel: {
            cancel(id)
        }
        state.withLock { _ = $0.cancelled.remove(id) }
        try Task.checkCancellation()
    }

    private func cancel(_ id: UInt64) {
        let continuation = state.withLock { state in
            let sleep = state.waiting.removeValue(forKey: id)
            if sleep == nil { state.cancelled.insert(id) }
            return sleep?.continuation
        }
        continuation?.resume()
    }

    private func run() async {
        while let wait = wake() { try? await Task.sleep(nanoseconds: wait) }
    }

    /// Ends the sleeps whose time has come.
    /// - Returns: The time until the next look; nil if no sleep is left.
    private func wake() -> UInt64? {
        let now = SystemEnvironment().monotonicNanoseconds()
        let (due, wait) = state.withLock { state in
            var next = UInt64.max
            var due: [CheckedContinuation<Void, Never>] = []
            for (id, sleep) in state.waiting {
                if sleep.deadline <= now {
                    due.append(sleep.continuation)
                    state.waiting[id] = nil
                } else {
                    next = min(next, sleep.deadline - now)
                }
            }
            state.isRunning = !state.waiting.isEmpty
            return (due, state.isRunning ? min(max(next, Self.pause), Self.shortest) : nil)
        }
        for continuation in due { continuation.resume() }
        return wait
    }
}
