/// Tells whether a call sleeps through its deadline, from looks at its thread: a hook that sleeps uses no processor time.
///
/// What counts between two looks is the time in which the thread neither ran nor waited for a processor, and only where it sleeps at
/// the second. A thread that is stopped, waits for a disk, or whose whole machine stands still is not at fault.
struct SleepWatch {
    private var budget = UInt64.max
    private var slept: UInt64 = 0
    private var last: ThreadUse?
    /// When to look, nanoseconds; nil: nobody is to be looked at.
    private(set) var due: UInt64?

    /// A call's turn has come.
    mutating func begin(_ budget: UInt64, now: UInt64) {
        self = SleepWatch()
        guard budget < .max else { return }
        self.budget = budget
        due = now &+ budget
    }

    /// No call is being worked on.
    mutating func end() { self = SleepWatch() }

    /// From the last look until now the thread may have waited for us.
    mutating func interrupt() { last = nil }

    /// - Parameter use: nil when it cannot be told, or the thread may be waiting for us now.
    /// - Returns: whether the call has slept for longer than it may.
    mutating func look(_ use: ThreadUse?, now: UInt64) -> Bool {
        guard due != nil else { return false }
        if let use, use.isAsleep, let last { slept += use.idle(since: last) }
        last = use
        // Short sleeps add up, which must not mean many looks.
        due = now &+ max(budget - min(slept, budget), 1_000_000)
        return slept >= budget
    }
}
