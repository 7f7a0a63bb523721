import SluiceCore

/// Token buckets by name (an address, an account), which refill with time.
///
/// Memory is bounded: a generation ends when it has `names` names, and the generation before it is forgotten, in the names' favour.
package struct AttemptBuckets: Sendable {
    private struct Bucket {
        var level: Double
        /// Monotonic nanoseconds.
        var filled: UInt64
    }

    private let capacity: Double
    private let secondsPerAttempt: Double
    private let names: Int
    private var young: [String: Bucket] = [:]
    private var old: [String: Bucket] = [:]

    /// - Parameters:
    ///   - rate: the attempts that a full bucket holds, and those that it regains per hour.
    ///   - names: names of one generation; at most twice as many are remembered.
    package init(_ rate: (atOnce: Int, perHour: Int), names: Int = Limits.loginNames) {
        capacity = Double(rate.atOnce)
        secondsPerAttempt = 3_600 / Double(rate.perHour)
        self.names = names
    }

    /// Names remembered now.
    package var count: Int { young.count + old.count }

    /// Returns the seconds until the name has an attempt; nil if it has one now.
    /// - Parameter now: monotonic nanoseconds, here and below.
    package func wait(_ name: String, now: UInt64) -> Int? {
        let bucket = refilled(name, now)
        return bucket.level >= 1 ? nil : max(1, Int(((1 - bucket.level) * secondsPerAttempt).rounded(.up)))
    }

    /// Takes an attempt. Attempts that ran at the same time may overdraw the bucket by its capacity.
    package mutating func take(_ name: String, now: UInt64) {
        var bucket = refilled(name, now)
        bucket.level = max(-capacity, bucket.level - 1)
        if young.count >= names, young[name] == nil {
            old = young
            young = [:]
        }
        young[name] = bucket
        old[name] = nil
    }

    private func refilled(_ name: String, _ now: UInt64) -> Bucket {
        guard var bucket = young[name] ?? old[name] else { return Bucket(level: capacity, filled: now) }
        let seconds = Double(now - min(now, bucket.filled)) / 1e9
        bucket.level = min(capacity, bucket.level + seconds / secondsPerAttempt)
        bucket.filled = max(now, bucket.filled)
        return bucket
    }
}

/// The newest names, in two generations.
struct RecentNames: Sendable {
    private var young: Set<String> = []
    private var old: Set<String> = []
    private let names: Int

    init(names: Int) { self.names = names }

    func contains(_ name: String) -> Bool { young.contains(name) || old.contains(name) }

    mutating func insert(_ name: String) {
        if young.count >= names, !young.contains(name) {
            old = young
            young = []
        }
        young.insert(name)
    }
}
