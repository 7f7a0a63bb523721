/// The delays between attempts. Each is drawn between `leastMilliseconds` and a bound: 1 s, doubled up to 5 minutes.
///
/// The draw covers the whole range. When a gateway ends, its clients thus reconnect spread over the first second, and not in step.
package struct Backoff: Hashable, Sendable {
    package static let leastMilliseconds: UInt64 = 250
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
        let longest = min(doubled, Backoff.longestMilliseconds)
        return longest - random % (longest - Backoff.leastMilliseconds + 1)
    }
}
