import Glibc
import SluiceCore

/// Threads for blocking work.
enum Threads {
    private final class Work {
        let body: @Sendable () -> Void
        init(body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs the work on a new, detached thread.
    /// - Throws: `pluginUnavailable` if the system has no thread left.
    static func start(_ body: @escaping @Sendable () -> Void) throws(SluiceError) {
        var thread = pthread_t()
        let work = unsafe Unmanaged.passRetained(Work(body: body))
        let result = unsafe pthread_create(&thread, nil, runWork, work.toOpaque())
        guard result == 0 else {
            unsafe work.release()
            throw SluiceError(.pluginUnavailable, "the system has no thread left for a plugin", cause: Descriptors.cause(result))
        }
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

/// Returns the monotonic clock in nanoseconds, which all processes of the machine share.
func monotonicNow() -> UInt64 {
    var now = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}
