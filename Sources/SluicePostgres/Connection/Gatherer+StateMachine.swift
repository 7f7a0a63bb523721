/// Who is answered together with whom, decided without doing anything: first come, first served, in at most `width` runs at a
/// time of at most `most` questions each. Who has been in line for longer than `patience` when a run ends gets no answer.
struct GathererStateMachine<Question, Waiter, Worker> {
    struct Run {
        let number: UInt64
        let questions: [Question]
    }

    private struct Work {
        var askers: [UInt64]
        /// Of the askers those who still wait.
        var left: Int
        var worker: Worker?
    }

    /// What a run may take before the next have fewer questions: each waits for all of its run.
    static var slow: Duration { .milliseconds(50) }

    private let width: Int
    private let most: Int
    private let patience: Duration
    /// Questions of the next run at most.
    private(set) var share: Int
    private var line: [(id: UInt64, question: Question, deadline: ContinuousClock.Instant)] = []
    /// Those in line, with no run, and those in runs.
    private var waiters: [UInt64: (waiter: Waiter, run: UInt64?)] = [:]
    private var runs: [UInt64: Work] = [:]
    private var runNumber: UInt64 = 0
    /// Who gave up before they began to wait.
    private var cancelled: Set<UInt64> = []

    init(width: Int, most: Int, patience: Duration) {
        self.width = max(1, width)
        self.most = max(1, most)
        self.patience = patience
        share = self.most
    }

    /// How many wait for a run to begin.
    var waiting: Int { line.count }

    enum Asked {
        case waits
        /// A run begins.
        case begins(Run)
        case cancelled
    }

    mutating func ask(_ id: UInt64, _ question: Question, _ waiter: Waiter, now: ContinuousClock.Instant) -> Asked {
        if cancelled.remove(id) != nil { return .cancelled }
        waiters[id] = (waiter, nil)
        line.append((id, question, now + patience))
        // Whoever is in line with room for a run is there alone.
        return next().map { .begins($0) } ?? .waits
    }

    /// Somebody works on a run now.
    /// - Returns: whether nobody waits for it any more.
    mutating func began(_ number: UInt64, by worker: Worker) -> Bool {
        runs[number]?.worker = worker
        return runs[number]?.left == 0
    }

    struct End {
        /// Who gets the answer to each question of the run, nil for those who gave up.
        var waiters: [Waiter?]
        /// Who has been in line for too long.
        var late: [Waiter]
        /// What begins in its place.
        var next: Run?
    }

    /// A run is over.
    /// - Parameter duration: how long its questions took, all together.
    mutating func end(_ number: UInt64, after duration: Duration, now: ContinuousClock.Instant) -> End {
        share = duration > Self.slow ? max(1, share / 2) : min(most, share * 2)
        let askers = runs.removeValue(forKey: number)?.askers ?? []
        // They are in line in the order of their deadlines.
        let late = line.prefix { $0.deadline <= now }.map(\.id)
        line.removeFirst(late.count)
        return End(
            waiters: askers.map { waiters.removeValue(forKey: $0)?.waiter },
            late: late.compactMap { waiters.removeValue(forKey: $0)?.waiter }, next: next())
    }

    /// Somebody gives up, perhaps before they began to wait.
    /// - Returns: the waiter, and the worker on a run that nobody waits for any more.
    mutating func cancel(_ id: UInt64) -> (waiter: Waiter?, worker: Worker?) {
        guard let (waiter, run) = waiters.removeValue(forKey: id) else {
            cancelled.insert(id)
            return (nil, nil)
        }
        guard let run else {
            line.removeAll { $0.id == id }
            return (waiter, nil)
        }
        runs[run]?.left -= 1
        return (waiter, runs[run]?.left == 0 ? runs[run]?.worker : nil)
    }

    /// Forgets somebody who has an answer.
    mutating func forget(_ id: UInt64) { cancelled.remove(id) }

    private mutating func next() -> Run? {
        guard !line.isEmpty, runs.count < width else { return nil }
        let asked = Array(line.prefix(share))
        line.removeFirst(asked.count)
        runNumber += 1
        for (id, _, _) in asked { waiters[id]?.run = runNumber }
        runs[runNumber] = Work(askers: asked.map(\.id), left: asked.count)
        return Run(number: runNumber, questions: asked.map(\.question))
    }
}

extension GathererStateMachine.Run: Sendable where Question: Sendable {}
