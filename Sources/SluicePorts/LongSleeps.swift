package import SluiceCore
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

    package func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer {
        guard nanoseconds >= LongSleeps.shortest else { return system.after(nanoseconds: nanoseconds, body) }
        let (end, isBeyond) = monotonicNanoseconds().addingReportingOverflow(nanoseconds)
        let id = sleeps.call(body, at: isBeyond ? .max : end)
        return EnvironmentTimer { [sleeps] in sleeps.drop(id) }
    }
}

/// Sleeps that share one timer.
final class LongSleeps: Sendable {
    /// The shortest time. The timer is set to no later time, so that a new sleep never ends before it.
    static let shortest: UInt64 = 10_000_000_000

    /// The shortest time between two looks, so that many sleeps with almost the same end cost one look.
    static let pause: UInt64 = 50_000_000

    /// What ends a sleep.
    private enum Waker {
        case continuation(CheckedContinuation<Void, Never>)
        case call(@Sendable () -> Void)

        func wake() {
            switch self {
            case .continuation(let continuation): continuation.resume()
            case .call(let body): body()
            }
        }
    }

    private struct State {
        var waiting: [UInt64: (deadline: UInt64, waker: Waker)] = [:]
        /// Sleeps that were cancelled before they waited.
        var cancelled: Set<UInt64> = []
        var lastID: UInt64 = 0
        var isRunning = false

        mutating func newID() -> UInt64 {
            lastID += 1
            return lastID
        }

        /// - Returns: `true` if the caller has to start the look at the sleeps.
        mutating func add(_ id: UInt64, _ deadline: UInt64, _ waker: Waker) -> Bool {
            waiting[id] = (deadline, waker)
            defer { isRunning = true }
            return !isRunning
        }
    }

    private let state = Mutex(State())

    /// The number of sleeps that are remembered.
    var count: Int { state.withLock { $0.waiting.count + $0.cancelled.count } }

    /// Sleeps until a time of the monotonic clock, at least `shortest` from now.
    /// - Throws: `CancellationError`.
    func sleep(until deadline: UInt64) async throws {
        let id = state.withLock { $0.newID() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isCancelled, starts) = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return (true, false) }
                    return (false, state.add(id, deadline, .continuation(continuation)))
                }
                if isCancelled { continuation.resume() }
                if starts { start() }
            }
        } onCancel: {
            cancel(id)
        }
        state.withLock { _ = $0.cancelled.remove(id) }
        try Task.checkCancellation()
    }

    /// Makes a call at a time of the monotonic clock, at least `shortest` from now, on any thread. It must return at once.
    /// - Returns: The number for `drop`.
    func call(_ body: @escaping @Sendable () -> Void, at deadline: UInt64) -> UInt64 {
        let (id, starts) = state.withLock { state in
            let id = state.newID()
            return (id, state.add(id, deadline, .call(body)))
        }
        if starts { start() }
        return id
    }

    /// Forgets a call. Does nothing if it was made.
    func drop(_ id: UInt64) { state.withLock { _ = $0.waiting.removeValue(forKey: id) } }

    private func cancel(_ id: UInt64) {
        let waker = state.withLock { state in
            let sleep = state.waiting.removeValue(forKey: id)
            if sleep == nil { state.cancelled.insert(id) }
            return sleep?.waker
        }
        waker?.wake()
    }

    private func start() {
        Task.detached { await self.run() }  // Unstructured because: it serves the sleeps of all tasks, and ends with the last of them.
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
            var due: [Waker] = []
            for (id, sleep) in state.waiting {
                if sleep.deadline <= now {
                    due.append(sleep.waker)
                    state.waiting[id] = nil
                } else {
                    next = min(next, sleep.deadline - now)
                }
            }
            state.isRunning = !state.waiting.isEmpty
            return (due, state.isRunning ? min(max(next, Self.pause), Self.shortest) : nil)
        }
        for waker in due { waker.wake() }
        return wait
    }
}
