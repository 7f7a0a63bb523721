import Glibc

/// Ends this process when a plugin's call exceeds its processor time.
///
/// Uses a kernel timer on the processor clock of the creating thread. That clock stops while the thread sleeps or the machine is busy.
/// `SleepWatch` covers a plugin that sleeps. The gateway's clock covers a plugin that disables the timer.
@safe struct ProcessorWatch {
    /// The signal that then ends the process. No handler exists.
    static let signal = SIGXCPU

    /// The timer. The first one of a process is null.
    private let timer: timer_t?
    private let isThere: Bool

    init() {
        var event = unsafe sigevent()
        unsafe event.sigev_notify = Int32(SIGEV_SIGNAL)
        unsafe event.sigev_signo = Self.signal
        var timer: timer_t?
        let result = unsafe timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer)
        unsafe self.timer = timer
        isThere = result == 0
    }

    /// Starts the timer before a call, on the watch's own thread.
    func begin(_ nanoseconds: UInt64) { set(nanoseconds) }

    /// Stops the timer after a call.
    func end() { set(0) }

    private func set(_ nanoseconds: UInt64) {
        var time = itimerspec()
        time.it_value.tv_sec = Int(clamping: nanoseconds / 1_000_000_000)
        time.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
        if isThere { unsafe timer_settime(timer, 0, &time, nil) }
    }

    /// Returns the processor time of this thread since its start, in nanoseconds.
    static func used() -> UInt64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}
