/// The state of a service: closed while it answers, open while calls fail at once, half-open while one call probes it.
///
/// A value without a clock. All times are monotonic nanoseconds of the caller.
package struct CircuitBreaker: Hashable, Sendable {
    /// The number of failures in a row that opens it.
    package static let failures = 5
    /// The first and the longest time that it stays open, in nanoseconds. The time doubles with each probe that fails.
    package static let waits: ClosedRange<UInt64> = 1_000_000_000...30_000_000_000

    private enum State: Hashable {
        case closed(failures: Int)
        case open(until: UInt64, wait: UInt64)
        case halfOpen(wait: UInt64)
    }

    private var state = State.closed(failures: 0)

    package init() {}

    /// `true` from the failure that opens it to the success that closes it.
    package var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Returns the seconds until a call may begin; nil if it may begin now. The caller reports the end of a call that begins.
    package mutating func begin(now: UInt64) -> Int? {
        switch state {
        case .closed: return nil
        case .open(let until, let wait):
            guard now >= until else { return Int((until - now) / 1_000_000_000) + 1 }
            state = .halfOpen(wait: wait)
            return nil
        case .halfOpen: return 1
        }
    }

    /// Notes an answer of the service, or a call that says nothing about it.
    package mutating func answered() { state = .closed(failures: 0) }

    /// Notes a call without an answer.
    package mutating func failed(now: UInt64) {
        switch state {
        case .closed(let failures):
            let failures = failures + 1
            state = failures < Self.failures ? .closed(failures: failures) : opened(now, Self.waits.lowerBound)
        case .halfOpen(let wait): state = opened(now, min(wait * 2, Self.waits.upperBound))
        // A call that began before the breaker opened.
        case .open: break
        }
    }

    private func opened(_ now: UInt64, _ wait: UInt64) -> State { .open(until: now + wait, wait: wait) }
}
