/// The delays between attempts: 1 s, doubled up to 5 minutes. Each is cut by up to a quarter at random, so that clients do not reconnect
/// in step.
package struct Backoff: Hashable, Sendable {
    package static let firstMilliseconds: UInt64 = 1_000
    package static let longestMilliseconds: UInt64 = 300_000
    package private(set) var failures = 0

    package init() {}

    package mutating func reset() { failures = 0 }

    /// Returns the next delay, in milliseconds.
    /// - Parameter random: a uniform random number, the source of the jitter.
    package mutating func next(random: UInt64) -> UInt64 {
        let doubled = Backoff.firstMilliseconds << UInt64(min(failures, 20))
        failures += 1
        let delay = min(doubled, Backoff.longestMilliseconds)
        return delay - random % (delay / 4 + 1)
    }
}
