import Dispatch
import SluiceCore
import Synchronization

/// The result of a run.
struct Gathered<Answer: Sendable>: Sendable {
    /// The answers, one for each question, in the same order.
    var answers: [Result<Answer, any Error>]
    /// The time that the questions took, without the preparation; zero if unknown.
    var duration: Duration = .zero
}

/// A coalescer of concurrent requests.
///
/// While no run is active, a question starts one at once, alone. Otherwise it waits until a run ends, and shares the next one with those
/// in line. While fewer than `width` runs are active, it waits for no longer than `gathering`.
///
/// The line holds one question per waiting caller. A question fails with `timeout` after 10 s at the earliest. If runs take longer
/// than 50 ms, fewer questions share them.
final class RequestCoalescer<Question: Sendable, Answer: Sendable>: Sendable {
    typealias Run = @Sendable ([Question]) async -> Gathered<Answer>
    private typealias Waiter = CheckedContinuation<Result<Answer, any Error>, Never>
    private typealias Machine = GathererStateMachine<Question, Waiter, Task<Void, Never>>

    private static var patience: Duration { .seconds(10) }

    private let state: Mutex<Machine>
    private let numbers = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - width: The maximum number of concurrent runs.
    ///   - most: The maximum number of questions of one run.
    ///   - gathering: The time for which questions gather while a run is active, although another one could begin.
    init(width: Int, most: Int, gathering: Duration = .zero) {
        state = Mutex(Machine(width: width, most: most, gathering: gathering, patience: Self.patience))
    }

    /// The number of questions that wait for a run to begin.
    var waiting: Int { state.withLock(\.waiting) }

    /// Returns the answer to a question.
    ///
    /// A cancelled caller receives `CancellationError` at once. A run is cancelled when all its askers are.
    /// - Parameter run: Answers the questions of a run that this call begins, or a later one that follows it.
    func ask(_ question: Question, _ run: @escaping Run) async throws -> Answer {
        let id = numbers.add(1, ordering: .relaxed).newValue
        // The cancellation handler may run after the answer, and its trace must not remain.
        defer { state.withLock { $0.forget(id) } }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                switch state.withLock({ $0.ask(id, question, waiter, now: .now) }) {
                case .waits(let time): if let time { wake(at: time, run) }
                case .begins(let begun): begin(begun, run)
                case .cancelled: waiter.resume(returning: .failure(CancellationError()))
                }
            }
        } onCancel: {
            let (waiter, worker) = state.withLock { $0.cancel(id) }
            worker?.cancel()
            waiter?.resume(returning: .failure(CancellationError()))
        }.get()
    }

    /// Begins a run at a time, if questions have gathered for long enough by then.
    private func wake(at time: ContinuousClock.Instant, _ run: @escaping Run) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int((time - .now).pollMilliseconds))) { [self] in
            let (begun, next) = state.withLock { $0.wake(now: .now) }
            if let begun { begin(begun, run) }
            if let next { wake(at: next, run) }
        }
    }

    private func begin(_ begun: Machine.Run, _ run: @escaping Run) {
        let worker = Task { await self.work(begun, run) }  // Unstructured because: it answers all callers; cancelled when all are.
        // All askers may have been cancelled before the worker was recorded.
        if state.withLock({ $0.began(begun.number, by: worker) }) { worker.cancel() }
    }

    private func work(_ begun: Machine.Run, _ run: @escaping Run) async {
        let gathered = await run(begun.questions)
        let end = state.withLock { $0.end(begun.number, after: gathered.duration, now: .now) }
        // The next run begins before the answers are delivered, so that no time is lost between runs.
        if let next = end.next { begin(next, run) }
        if let time = end.wake { wake(at: time, run) }
        for (number, waiter) in end.waiters.enumerated() {
            waiter?.resume(returning: gathered.answers.indices.contains(number) ? gathered.answers[number] : .failure(Self.unanswered))
        }
        for waiter in end.late { waiter.resume(returning: .failure(Self.late)) }
    }

    private static var unanswered: SluiceError { SluiceError(.internalError, "A statement of a combined request has no result.") }

    private static var late: PostgresError {
        PostgresError(
            .timeout, "A combined request waited for \(patience) in the queue to PostgreSQL.",
            fix: "Find the slow statements.")
    }
}
