/// Detects a call that sleeps through its deadline, from samples of its thread. A sleeping hook uses no processor time.
///
/// Between two samples, only time counts in which the thread neither ran nor waited for a processor. It counts only if the thread sleeps
/// at the second sample. A thread that is stopped, waits for a disk, or runs on a suspended machine is not at fault.
struct SleepWatch {
    private var budget = UInt64.max
    private var slept: UInt64 = 0
    private var last: ThreadUse?
    /// The time of the next sample, in monotonic nanoseconds; nil if none is due.
    private(set) var due: UInt64?

    /// Starts with a call's turn.
    /// - Parameter budget: The limit of its sleep, in nanoseconds; `.max` disables the watch.
    mutating func begin(_ budget: UInt64, now: UInt64) {
        self = SleepWatch()
        guard budget < .max else { return }
        self.budget = budget
        due = now &+ budget
    }

    /// Stops: no call is being processed.
    mutating func end() { self = SleepWatch() }

    /// Discards the last sample, because the thread may have waited for the gateway since.
    mutating func interrupt() { last = nil }

    /// Adds a sample.
    /// - Parameter use: nil if it is unknown, or if the thread may be waiting for the gateway now.
    /// - Returns: `true` if the call has slept longer than its budget.
    mutating func look(_ use: ThreadUse?, now: UInt64) -> Bool {
        guard due != nil else { return false }
        if let use, use.isAsleep, let last { slept += use.idle(since: last) }
        last = use
        // Many short sleeps add up. The minimum of 1 ms bounds the rate of samples.
        due = now &+ max(budget - min(slept, budget), 1_000_000)
        return slept >= budget
    }
}
