/// The source of time and randomness for pure code, which must not reach for the system's own. Simulations replace it.
package protocol Environment: Sendable {
    /// Milliseconds since 1970, UTC; may jump.
    func wallMilliseconds() -> Int64
    /// Nanoseconds from an arbitrary start. Never decreases.
    func monotonicNanoseconds() -> UInt64
    /// Returns 64 random bits.
    func random() -> UInt64
    /// - Throws: `CancellationError`.
    func sleep(nanoseconds: UInt64) async throws
}

/// The system's clocks and random numbers.
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
