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
    /// Calls a body once after a time, unless the timer is cancelled before. A body that is late may be called although it is cancelled.
    func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer
}

/// A call that an environment makes later.
package struct EnvironmentTimer: Sendable {
    private let onCancel: @Sendable () -> Void

    package init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

    /// Lets the call not be made. Does nothing behind it.
    package func cancel() { onCancel() }
}

extension Environment {
    package func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer {
        let task = Task.detached {  // Unstructured because: the caller goes on. It ends at its time or with the timer.
            guard (try? await self.sleep(nanoseconds: nanoseconds)) != nil, !Task.isCancelled else { return }
            body()
        }
        return EnvironmentTimer { task.cancel() }
    }
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
