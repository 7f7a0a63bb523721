import Glibc

/// Ends this process when a call of the plugin uses more processor time than it has.
///
/// A timer of the kernel on the clock of the thread that made the watch, which stands while the thread sleeps or waits for a busy
/// machine. A plugin can sleep, which is what `SleepWatch` is for, or undo it, which the gateway's clock is for.
@safe struct ProcessorWatch {
    /// What the process then dies of: nobody handles it.
    static let signal = SIGXCPU

    /// The kernel's first timer of a process is null.
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

    /// On the watch's own thread, before a call.
    func begin(_ nanoseconds: UInt64) { set(nanoseconds) }

    /// After it.
    func end() { set(0) }

    private func set(_ nanoseconds: UInt64) {
        var time = itimerspec()
        time.it_value.tv_sec = Int(clamping: nanoseconds / 1_000_000_000)
        time.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
        if isThere { unsafe timer_settime(timer, 0, &time, nil) }
    }

    /// Processor time that this thread has used since it began, nanoseconds.
    static func used() -> UInt64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}
