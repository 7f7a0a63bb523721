/// The outside that pure code may not reach for: time and randomness come in through it (DESIGN section 2, rule 4).
package protocol Environment: Sendable {
    /// Milliseconds since 1970, UTC; may jump.
    func wallMilliseconds() -> Int64
    /// Nanoseconds from an arbitrary start; never goes back.
    func monotonicNanoseconds() -> UInt64
    func random() -> UInt64
    func sleep(nanoseconds: UInt64) async throws
}

/// The real one.
package struct SystemEnvironment: Environment {
    package init() {}

    package func wallMilliseconds() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
    }

    package func monotonicNanoseconds() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    package func random() -> UInt64 { UInt64.random(in: .min ... .max) }

    package func sleep(nanoseconds: UInt64) async throws { try await Task.sleep(nanoseconds: nanoseconds) }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif
