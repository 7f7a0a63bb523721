import SluicePluginKit

/// The recent writes of users.
///
/// Memory is bounded. Beyond `names` pairs of user and class per generation, the least recently active are forgotten, which restores their
/// full limits.
struct RateLimitUsage {
    private struct Key: Hashable {
        var user: String
        var type: String
    }

    private struct Account {
        /// The number of writes that may follow at once.
        var tokens: Double
        var filled: ContinuousClock.Instant
        var inserts: Int64 = 0
        var dayBegan: ContinuousClock.Instant
    }

    static let names = 10_000
    private static let day = Duration.seconds(86_400)

    private var recent: [Key: Account] = [:]
    private var earlier: [Key: Account] = [:]

    mutating func spend(
        user: String, type: String, isInsert: Bool, _ limit: Limit, at now: ContinuousClock.Instant
    ) -> WriteVerdict {
        let key = Key(user: user, type: type)
        var account = recent[key] ?? earlier[key] ?? Account(tokens: limit.burst, filled: now, dayBegan: now)
        defer { keep(account, for: key) }
        if now - account.dayBegan >= Self.day { (account.inserts, account.dayBegan) = (0, now) }
        if isInsert, let most = limit.insertsPerDay, account.inserts >= most {
            return .deny(reason: "\(most) new objects of \(type) within a day are enough", rule: "inserts_per_day of \(type)")
        }
        if let perMinute = limit.perMinute {
            account.tokens = min(limit.burst, account.tokens + (now - account.filled) / .seconds(60) * perMinute)
            account.filled = now
            guard account.tokens >= 1 else {
                return .deny(reason: "more than \(Int64(perMinute)) writes of \(type) a minute", rule: "writes_per_minute of \(type)")
            }
            account.tokens -= 1
        }
        if isInsert { account.inserts += 1 }
        return .allow
    }

    private mutating func keep(_ account: Account, for key: Key) {
        if recent.count >= Self.names, recent[key] == nil { (earlier, recent) = (recent, [:]) }
        recent[key] = account
    }
}
