import Dispatch
import SluiceCore
import Synchronization

/// Runs heavy work off the cooperative threads, a bounded amount at once and a bounded amount waiting.
final class WorkQueue: Sendable {
    private struct State {
        var running = 0
        /// First come, first served.
        var waiting: [@Sendable () -> Void] = []
    }

    private let label: String
    private let width: Int
    private let waiting: Int
    private let queue: DispatchQueue
    private let state = Mutex(State())

    init(label: String, width: Int, waiting: Int) {
        self.label = label
        self.width = width
        self.waiting = waiting
        queue = DispatchQueue(label: "sluice.\(label)", attributes: .concurrent)
    }

    /// - Throws: `tooManyRequests` at once when as much as allowed is waiting already.
    func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async throws(SluiceError) -> Result {
        let result: Result? = await withCheckedContinuation { continuation in
            enter(work: { continuation.resume(returning: work()) }, refuse: { continuation.resume(returning: nil) })
        }
        guard let result else {
            throw SluiceError(.tooManyRequests, "More than \(waiting) requests wait for \(label).", fix: "Try again in a few seconds.")
        }
        return result
    }

    private enum Entry { case start, wait, refuse }

    private func enter(work: @escaping @Sendable () -> Void, refuse: () -> Void) {
        let entry = state.withLock { state -> Entry in
            if state.running < width {
                state.running += 1
                return .start
            }
            if state.waiting.count >= waiting { return .refuse }
            state.waiting.append(work)
            return .wait
        }
        switch entry {
        case .start: start(work)
        case .wait: break
        case .refuse: refuse()
        }
    }

    private func start(_ work: @escaping @Sendable () -> Void) {
        queue.async {
            work()
            let next = self.state.withLock { state -> (@Sendable () -> Void)? in
                if state.waiting.isEmpty {
                    state.running -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            if let next { self.start(next) }
        }
    }
}
