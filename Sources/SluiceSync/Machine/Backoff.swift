/// How long to wait before the next attempt: 1 s doubling to 5 minutes, cut by up to a quarter at random so that clients
/// do not come back in step.
package struct Backoff: Hashable, Sendable {
    package static let firstMilliseconds: UInt64 = 1_000
    package static let longestMilliseconds: UInt64 = 300_000
    package private(set) var failures = 0

    package init() {}

    package mutating func reset() { failures = 0 }

    /// - Parameter random: any number; its distribution is the jitter's.
    package mutating func next(random: UInt64) -> UInt64 {
        let doubled = Backoff.firstMilliseconds << UInt64(min(failures, 20))
        failures += 1
        let delay = min(doubled, Backoff.longestMilliseconds)
        return delay - random % (delay / 4 + 1)
    }
}
