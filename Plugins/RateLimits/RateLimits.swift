import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(RateLimits.self) }

/// Limits the writes of a user: writes per minute, and new objects per day, for each class.
///
/// It grants no access itself. It denies writes that exceed a limit.
final class RateLimits: SessionRules, WriteRules {
    static let name = "RateLimits"
    static let version = "1.0"

    private static let limits: [String: ConfigKey] = [
        "writes_per_minute": ConfigKey(.int(min: 1, max: 1_000_000), help: "The sustained rate of a user's writes."),
        "burst": ConfigKey(.int(min: 1, max: 1_000_000), help: "The burst of a user's writes. Default: the writes of a minute."),
        "inserts_per_day": ConfigKey(.int(min: 0), help: "A user's new objects within 24 hours of the first."),
    ]
    static let configKeys: [String: ConfigKey]? = [
        "types": ConfigKey(.map(of: .object(limits)), required: true, help: "Bounds by class. A class that is not listed has none."),
        "exempt": ConfigKey(.text, help: "A member of custom data that exempts a user from all bounds if it is true."),
    ]

    private let clock = ContinuousClock()
    private var exempt: String?
    private var limits: [String: Limit] = [:]
    private var spending = RateLimitUsage()

    init(log: PluginLog) {}

    func configure(_ app: AppConfiguration) throws -> [String] {
        exempt = app.config["exempt"]?.string
        limits = [:]
        for type in app.config["types"]?.members ?? [] { limits[type.key] = Limit(type.value) }
        let unknown = limits.keys.filter { app.schema[$0] == nil }.sorted()
        return unknown.map { "types.\($0): the app has no such type" }
    }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        var plan: [String: TypeRules] = [:]
        for type in types {
            let isBounded = limits[type] != nil && !isExempt(user)
            plan[type] = TypeRules(
                read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: true, delete: true, role: isBounded ? "bounded" : "unbounded",
                checkWrite: isBounded, grants: false)
        }
        return plan
    }

    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
        guard !isExempt(user) else { return writes.map { _ in .allow } }
        let now = clock.now
        return writes.map { write in
            guard let limit = limits[write.type] else { return .allow }
            return spending.spend(user: user.id, type: write.type, isInsert: write.operation == "insert", limit, at: now)
        }
    }

    private func isExempt(_ user: PluginUser) -> Bool { exempt.map { user.customData[$0]?.bool == true } ?? false }
}

/// The limits for one user and class.
struct Limit {
    var perMinute: Double?
    var burst: Double
    var insertsPerDay: Int64?

    init(_ config: PluginValue) {
        perMinute = config["writes_per_minute"]?.number
        burst = config["burst"]?.number ?? perMinute ?? 0
        insertsPerDay = config["inserts_per_day"]?.int
    }
}
