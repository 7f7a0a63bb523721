/// Token buckets by name (an address, an account), refilled with time. Pure.
///
/// Memory is bounded: once a generation has `names` names, the one before it is dropped, and the buckets in it count as full. Every step
/// costs amortised O(1).
package struct TokenBuckets<Name: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var level: Double
        /// In monotonic nanoseconds.
        var filled: UInt64
    }

    private let capacity: Double
    private let secondsPerToken: Double
    private let names: Int
    private var young: [Name: Bucket] = [:]
    private var old: [Name: Bucket] = [:]

    /// - Parameters:
    ///   - capacity: the tokens of a full bucket.
    ///   - secondsPerToken: the time that a bucket takes to regain a token.
    ///   - names: the names of one generation. At most twice as many are remembered.
    package init(capacity: Int, secondsPerToken: Double, names: Int) {
        self.capacity = Double(capacity)
        self.secondsPerToken = secondsPerToken
        self.names = names
    }

    /// The number of names remembered.
    package var count: Int { young.count + old.count }

    /// Returns the seconds until the name has a token, or `nil` if it has one now.
    /// - Parameter now: monotonic nanoseconds, also below.
    package func wait(_ name: Name, now: UInt64) -> Int? { wait(refilled(name, now)) }

    /// Takes a token. Concurrent takers may overdraw the bucket by its capacity.
    package mutating func take(_ name: Name, now: UInt64) { take(name, 1, refilled(name, now)) }

    /// Takes tokens if so many are available.
    /// - Returns: `nil` if they were taken, otherwise the seconds until the name has one.
    package mutating func admit(_ name: Name, _ tokens: Int = 1, now: UInt64) -> Int? {
        let bucket = refilled(name, now)
        guard bucket.level >= Double(tokens) else { return wait(bucket) ?? 1 }
        take(name, Double(tokens), bucket)
        return nil
    }

    private func wait(_ bucket: Bucket) -> Int? {
        bucket.level >= 1 ? nil : max(1, Int(((1 - bucket.level) * secondsPerToken).rounded(.up)))
    }

    private mutating func take(_ name: Name, _ tokens: Double, _ bucket: Bucket) {
        if young.count >= names, young[name] == nil {
            old = young
            young = [:]
        }
        young[name] = Bucket(level: max(-capacity, bucket.level - tokens), filled: bucket.filled)
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
