import Dispatch
import SluiceCore
import Synchronization

/// Runs heavy work on Dispatch threads instead of the cooperative pool. Both the running and the waiting work are bounded.
final class WorkQueue: Sendable {
    private struct Work: Sendable {
        var run: @Sendable () -> Void
        var refuse: @Sendable () -> Void
    }

    private struct State {
        var running = 0
        var waiting: FairQueue<Work>
    }

    private let label: String
    private let width: Int
    private let waiting: Int
    private let queue: DispatchQueue
    private let state: Mutex<State>

    init(label: String, width: Int, waiting: Int) {
        self.label = label
        self.width = width
        self.waiting = waiting
        queue = DispatchQueue(label: "sluice.\(label)", attributes: .concurrent)
        state = Mutex(State(waiting: FairQueue(capacity: waiting)))
    }

    /// Runs the work and returns its result.
    ///
    /// - Parameter owner: The queue line of the work. Lines take turns, and a full queue drops the newest work of the longest line.
    /// - Throws: `tooManyRequests` if the queue dropped the work.
    func run<Result: Sendable>(of owner: String = "", _ work: @escaping @Sendable () -> Result) async throws(SluiceError) -> Result {
        let result: Result? = await withCheckedContinuation { continuation in
            enter(
                Work(run: { continuation.resume(returning: work()) }, refuse: { continuation.resume(returning: nil) }), of: owner)
        }
        guard let result else {
            throw SluiceError(.tooManyRequests, "More than \(waiting) requests wait for \(label).", fix: "Try again in a few seconds.")
        }
        return result
    }

    private func enter(_ work: Work, of owner: String) {
        let (starts, refused) = state.withLock { state -> (Bool, Work?) in
            if state.running < width {
                state.running += 1
                return (true, nil)
            }
            return (false, state.waiting.add(work, of: owner))
        }
        if starts { start(work.run) }
        refused?.refuse()
    }

    private func start(_ work: @escaping @Sendable () -> Void) {
        queue.async {
            work()
            let next = self.state.withLock { state -> Work? in
                let next = state.waiting.next()
                // The slot passes to the next work directly, so newer work cannot overtake those that wait.
                if next == nil { state.running -= 1 }
                return next
            }
            if let next { self.start(next.run) }
        }
    }
}
