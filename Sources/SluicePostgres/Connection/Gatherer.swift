import SluiceCore
import Synchronization

/// What came of a run.
struct Gathered<Answer: Sendable>: Sendable {
    /// One for each question, in their order.
    var answers: [Result<Answer, any Error>]
    /// How long the questions took, without what came before; zero when that is not known.
    var duration: Duration = .zero
}

/// Answers together what is asked at the same time. Who asks while enough runs are under way waits until one has ended, and
/// shares the next with the others who wait; who asks alone is answered at once, alone.
///
/// In line are as many as ask at a time, and nobody is refused before ten seconds. Runs that take long are shared by fewer.
final class Gatherer<Question: Sendable, Answer: Sendable>: Sendable {
    typealias Run = @Sendable ([Question]) async -> Gathered<Answer>
    private typealias Waiter = CheckedContinuation<Result<Answer, any Error>, Never>
    private typealias Machine = GathererStateMachine<Question, Waiter, Task<Void, Never>>

    private static var patience: Duration { .seconds(10) }

    private let state: Mutex<Machine>
    private let numbers = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - width: runs at a time.
    ///   - most: questions of one run.
    init(width: Int, most: Int) { state = Mutex(Machine(width: width, most: most, patience: Self.patience)) }

    /// How many wait for a run to begin.
    var waiting: Int { state.withLock(\.waiting) }

    /// Who is cancelled gets a `CancellationError` at once; a run is cancelled when all of its askers are.
    /// - Parameter run: answers the questions of others too, where it is this one that begins a run.
    func ask(_ question: Question, _ run: @escaping Run) async throws -> Answer {
        let id = numbers.add(1, ordering: .relaxed).newValue
        defer { state.withLock { $0.forget(id) } }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                switch state.withLock({ $0.ask(id, question, waiter, now: .now) }) {
                case .waits: break
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

    private func begin(_ begun: Machine.Run, _ run: @escaping Run) {
        // Unstructured because: it answers all who wait, whichever of them gives up; it is cancelled when all have.
        let worker = Task { await self.work(begun, run) }
        if state.withLock({ $0.began(begun.number, by: worker) }) { worker.cancel() }
    }

    private func work(_ begun: Machine.Run, _ run: @escaping Run) async {
        let gathered = await run(begun.questions)
        let end = state.withLock { $0.end(begun.number, after: gathered.duration, now: .now) }
        if let next = end.next { begin(next, run) }
        for (number, waiter) in end.waiters.enumerated() {
            waiter?.resume(returning: gathered.answers.indices.contains(number) ? gathered.answers[number] : .failure(Self.unanswered))
        }
        for waiter in end.late { waiter.resume(returning: .failure(Self.late)) }
    }

    private static var unanswered: SluiceError { SluiceError(.internalError, "A question that was asked with others has no answer.") }

    private static var late: PostgresFailure {
        PostgresFailure(
            .timeout, "What is asked of PostgreSQL by many at a time was in line for \(patience).",
            fix: "Find the statements that take so long.")
    }
}
