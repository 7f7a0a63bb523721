#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A descriptor that becomes readable on request, for a thread that waits in `poll(2)`.
final class WakePipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    /// Creates the pipe; nil if the process has no descriptors left.
    init?() {
        var ends: (Int32, Int32) = (-1, -1)
        let made = unsafe withUnsafeMutableBytes(of: &ends) { unsafe pipe($0.baseAddress?.assumingMemoryBound(to: Int32.self)) }
        guard made == 0 else { return nil }
        (readEnd, writeEnd) = ends
        for end in [readEnd, writeEnd] {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func wake() {
        var byte: UInt8 = 1
        // A full pipe is readable already.
        _ = unsafe write(writeEnd, &byte, 1)
    }

    func drain() {
        var bytes: (UInt64, UInt64) = (0, 0)
        while unsafe read(readEnd, &bytes, 16) == 16 {}
    }
}
