import Glibc

/// Threads for work that blocks.
enum Threads {
    private final class Work {
        let body: @Sendable () -> Void
        init(body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs the work on a thread of its own.
    static func start(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let work = unsafe Unmanaged.passRetained(Work(body: body)).toOpaque()
        let result = unsafe pthread_create(&thread, nil, runWork, work)
        precondition(result == 0, "the system has no thread left: \(Descriptors.text(result))")
        pthread_detach(thread)
    }

    fileprivate static func run(_ context: UnsafeMutableRawPointer) {
        let work = unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
        work.body()
    }
}

private func runWork(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context = unsafe context { unsafe Threads.run(context) }
    return nil
}

/// Nanoseconds of the clock that all processes of the machine share and that never goes back.
func monotonicNow() -> UInt64 {
    var now = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}
