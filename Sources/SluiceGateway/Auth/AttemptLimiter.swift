import Synchronization

/// Counts attempts per name (an address, an e-mail) in buckets that refill with time. Bounded: what was not used lately is
/// forgotten, which is in the name's favour.
final class AttemptLimiter: Sendable {
    private struct Bucket {
        var level: Double
        var filled: UInt64
    }

    /// The names of the present and of the last generation; a generation ends when it is full.
    private struct Table {
        var young: [String: Bucket] = [:]
        var old: [String: Bucket] = [:]
    }

    private let capacity: Double
    private let secondsPerAttempt: Double
    private let names: Int
    private let table = Mutex(Table())

    /// - Parameters:
    ///   - burst: attempts that may come at once.
    ///   - perMinute: attempts that come back per minute.
    ///   - names: names remembered, at most twice as many.
    init(burst: Int, perMinute: Double, names: Int = 10_000) {
        capacity = Double(burst)
        secondsPerAttempt = 60 / perMinute
        self.names = names
    }

    /// Counts an attempt.
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: nil when it is allowed, else seconds until the next one will be.
    func attempt(_ name: String, now: UInt64) -> Int? {
        table.withLock { table in
            var bucket = refilled(name, now, table)
            guard bucket.level >= 1 else { return max(1, Int(((1 - bucket.level) * secondsPerAttempt).rounded(.up))) }
            bucket.level -= 1
            store(bucket, name, &table)
            return nil
        }
    }

    /// Takes an attempt back: it was successful.
    func forgive(_ name: String, now: UInt64) {
        table.withLock { table in
            var bucket = refilled(name, now, table)
            bucket.level = min(capacity, bucket.level + 1)
            store(bucket, name, &table)
        }
    }

    /// Names remembered now.
    var count: Int { table.withLock { $0.young.count + $0.old.count } }

    private func refilled(_ name: String, _ now: UInt64, _ table: Table) -> Bucket {
        guard var bucket = table.young[name] ?? table.old[name] else { return Bucket(level: capacity, filled: now) }
        let seconds = Double(now - min(now, bucket.filled)) / 1e9
        bucket.level = min(capacity, bucket.level + seconds / secondsPerAttempt)
        bucket.filled = max(now, bucket.filled)
        return bucket
    }

    private func store(_ bucket: Bucket, _ name: String, _ table: inout Table) {
        if table.young.count >= names, table.young[name] == nil {
            table.old = table.young
            table.young = [:]
        }
        table.young[name] = bucket
    }
}
