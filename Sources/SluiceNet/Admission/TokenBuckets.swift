/// Token buckets by name (an address, an account), which refill with time. Pure.
///
/// Memory is bounded: a generation ends when it has `names` names, and the generation before it is forgotten, in the names' favour.
/// Every step costs O(1), amortised.
package struct TokenBuckets<Name: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var level: Double
        /// Monotonic nanoseconds.
        var filled: UInt64
    }

    private let capacity: Double
    private let secondsPerToken: Double
    private let names: Int
    private var young: [Name: Bucket] = [:]
    private var old: [Name: Bucket] = [:]

    /// - Parameters:
    ///   - capacity: tokens that a full bucket holds.
    ///   - secondsPerToken: the time in which a bucket regains a token.
    ///   - names: names of one generation; at most twice as many are remembered.
    package init(capacity: Int, secondsPerToken: Double, names: Int) {
        self.capacity = Double(capacity)
        self.secondsPerToken = secondsPerToken
        self.names = names
    }

    /// Names remembered now.
    package var count: Int { young.count + old.count }

    /// Returns the seconds until the name has a token; nil if it has one now.
    /// - Parameter now: monotonic nanoseconds, here and below.
    package func wait(_ name: Name, now: UInt64) -> Int? { wait(refilled(name, now)) }

    /// Takes a token. Takers that ran at the same time may overdraw the bucket by its capacity.
    package mutating func take(_ name: Name, now: UInt64) { take(name, refilled(name, now)) }

    /// Takes a token if there is one.
    /// - Returns: nil if it is taken, else the seconds until the name has one.
    package mutating func admit(_ name: Name, now: UInt64) -> Int? {
        let bucket = refilled(name, now)
        if let seconds = wait(bucket) { return seconds }
        take(name, bucket)
        return nil
    }

    private func wait(_ bucket: Bucket) -> Int? {
        bucket.level >= 1 ? nil : max(1, Int(((1 - bucket.level) * secondsPerToken).rounded(.up)))
    }

    private mutating func take(_ name: Name, _ bucket: Bucket) {
        if young.count >= names, young[name] == nil {
            old = young
            young = [:]
        }
        young[name] = Bucket(level: max(-capacity, bucket.level - 1), filled: bucket.filled)
        old[name] = nil
    }

    private func refilled(_ name: Name, _ now: UInt64) -> Bucket {
        guard var bucket = young[name] ?? old[name] else { return Bucket(level: capacity, filled: now) }
        let seconds = Double(now - min(now, bucket.filled)) / 1e9
        bucket.level = min(capacity, bucket.level + seconds / secondsPerToken)
        bucket.filled = max(now, bucket.filled)
        return bucket
    }
}
