/// The state machine of a `RequestCoalescer`, without effects.
///
/// Questions are served in order, in at most `width` concurrent runs of at most `most` questions each. A run begins beside another one only
/// once a question has waited for `gathering`. A question that has waited longer than `patience` when a run ends gets no answer.
struct GathererStateMachine<Question, Waiter, Worker> {
    struct Run {
        let number: UInt64
        let questions: [Question]
    }

    private struct Work {
        var askers: [UInt64]
        /// The number of askers that still wait.
        var left: Int
        var worker: Worker?
    }

    /// The duration of a run above which the next runs have fewer questions: each asker waits for the whole run.
    static var slow: Duration { .milliseconds(50) }

    private let width: Int
    private let most: Int
    private let gathering: Duration
    private let patience: Duration
    /// The maximum number of questions of the next run.
    private(set) var share: Int
    private var line: [(id: UInt64, question: Question, asked: ContinuousClock.Instant)] = []
    /// `true` while a call of `wake` is due.
    private var isWaking = false
    /// The waiters in line, without a run, and those in runs.
    private var waiters: [UInt64: (waiter: Waiter, run: UInt64?)] = [:]
    private var runs: [UInt64: Work] = [:]
    private var runNumber: UInt64 = 0
    /// The askers that were cancelled before they began to wait.
    private var cancelled: Set<UInt64> = []

    init(width: Int, most: Int, gathering: Duration = .zero, patience: Duration) {
        self.width = max(1, width)
        self.most = max(1, most)
        self.gathering = gathering
        self.patience = patience
        share = self.most
    }

    /// The number of questions that wait for a run to begin.
    var waiting: Int { line.count }

    enum Asked {
        /// The question waits. If a time is given, `wake` must be called then.
        case waits(ContinuousClock.Instant?)
        /// The question begins a run.
        case begins(Run)
        case cancelled
    }

    mutating func ask(_ id: UInt64, _ question: Question, _ waiter: Waiter, now: ContinuousClock.Instant) -> Asked {
        if cancelled.remove(id) != nil { return .cancelled }
        waiters[id] = (waiter, nil)
        line.append((id, question, now))
        return next(now).map { .begins($0) } ?? .waits(nextWake())
    }

    /// Begins a run beside another one if a question has gathered for long enough.
    ///
    /// - Returns: The run, and the time of the next call.
    mutating func wake(now: ContinuousClock.Instant) -> (run: Run?, next: ContinuousClock.Instant?) {
        isWaking = false
        return (next(now), nextWake())
    }

    /// Returns the time at which a run may begin beside another one, unless a call is due already, or no run is free until one ends.
    private mutating func nextWake() -> ContinuousClock.Instant? {
        guard !isWaking, let first = line.first, runs.count < width else { return nil }
        isWaking = true
        return first.asked + gathering
    }

    /// Records the worker of a run.
    ///
    /// - Returns: `true` if no asker of the run waits any more.
    mutating func began(_ number: UInt64, by worker: Worker) -> Bool {
        runs[number]?.worker = worker
        return runs[number]?.left == 0
    }

    struct End {
        /// The waiter of each question of the run; nil for askers that were cancelled.
        var waiters: [Waiter?]
        /// The waiters that have been in line for too long.
        var late: [Waiter]
        /// The run that begins in place of the ended one.
        var next: Run?
        /// The time at which `wake` must be called; nil if it is due already, or no question waits for it.
        var wake: ContinuousClock.Instant?
    }

    /// Ends a run.
    ///
    /// - Parameter duration: The time that all its questions took together.
    mutating func end(_ number: UInt64, after duration: Duration, now: ContinuousClock.Instant) -> End {
        // A slow run halves the size of the next ones, a fast run doubles it.
        share = duration > Self.slow ? max(1, share / 2) : min(most, share * 2)
        let askers = runs.removeValue(forKey: number)?.askers ?? []
        // All have the same patience, so the line is in the order of the deadlines.
        let late = line.prefix { $0.asked + patience <= now }.map(\.id)
        line.removeFirst(late.count)
        return End(
            waiters: askers.map { waiters.removeValue(forKey: $0)?.waiter },
            late: late.compactMap { waiters.removeValue(forKey: $0)?.waiter }, next: next(now), wake: nextWake())
    }

    /// Cancels an asker, possibly before it began to wait.
    ///
    /// - Returns: The waiter to resume, and the worker to cancel if its run has no waiting asker left.
    mutating func cancel(_ id: UInt64) -> (waiter: Waiter?, worker: Worker?) {
        guard let (waiter, run) = waiters.removeValue(forKey: id) else {
            cancelled.insert(id)
            return (nil, nil)
        }
        guard let run else {
            line.removeAll { $0.id == id }
            return (waiter, nil)
        }
        // The run continues for its other askers.
        runs[run]?.left -= 1
        return (waiter, runs[run]?.left == 0 ? runs[run]?.worker : nil)
    }

    /// Forgets the cancellation of an asker that has been answered.
    mutating func forget(_ id: UInt64) { cancelled.remove(id) }

    /// Begins a run if one is free and a question waits.
    private mutating func next(_ now: ContinuousClock.Instant) -> Run? {
        guard let first = line.first, runs.count < width, runs.isEmpty || first.asked + gathering <= now else { return nil }
        let asked = Array(line.prefix(share))
        line.removeFirst(asked.count)
        runNumber += 1
        for (id, _, _) in asked { waiters[id]?.run = runNumber }
        runs[runNumber] = Work(askers: asked.map(\.id), left: asked.count)
        return Run(number: runNumber, questions: asked.map(\.question))
    }
}

extension GathererStateMachine.Run: Sendable where Question: Sendable {}
