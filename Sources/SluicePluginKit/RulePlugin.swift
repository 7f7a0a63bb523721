/// A plugin written in Swift.
///
/// The gateway makes one instance when it loads the library and calls it on one thread at a time. A type takes part in a
/// hook by conforming to that hook's protocol: `SessionRules`, `SubscriptionRules`, `WriteRules`, `IngestRules`,
/// `UserChangeRules`. For hooks that it lacks, the next plugin of the chain is asked.
///
/// A hook that throws `PluginDenial` denies with that reason. Any other error means that the plugin could not decide,
/// which also counts as a denial.
public protocol RulePlugin: AnyObject {
    /// As logs and errors name the plugin.
    static var name: String { get }
    static var version: String { get }
    /// What the plugin's configuration may hold; the gateway checks it, with the line of each mistake, before `configure`.
    /// Nil, the default: anything. Empty: nothing.
    static var configKeys: [String: ConfigKey]? { get }

    init(log: PluginLog)

    /// Called once after loading and again whenever the app directory changes. Does nothing by default.
    /// - Returns: warnings for the gateway's log.
    /// - Throws: what is wrong with the configuration. The plugin then keeps the configuration it had.
    func configure(_ app: AppConfiguration) throws -> [String]
}

extension RulePlugin {
    public static var configKeys: [String: ConfigKey]? { nil }
    public func configure(_ app: AppConfiguration) throws -> [String] { [] }
}

/// The hook that decides what a session may read and write.
public protocol SessionRules: RulePlugin {
    /// Called when a session starts and when its user's data changed.
    /// - Returns: rules by type name; a type that is left out is denied.
    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules]
}

/// The hook that accepts, narrows or refuses subscription sets.
public protocol SubscriptionRules: RulePlugin {
    /// - Returns: queries to be ANDed to what was asked for; empty accepts the set as it is.
    func checkSubscription(user: PluginUser, queries: [PluginQuery]) throws -> [PluginQuery]
}

/// The hook that sees single writes, for the types whose `TypeRules.checkWrite` is set.
public protocol WriteRules: RulePlugin {
    /// - Returns: one verdict for each write, in order.
    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict]
}

/// The hook that sees asymmetric objects before they are stored.
public protocol IngestRules: RulePlugin {
    /// - Parameter objects: objects of one type, in the order they came; none to see whether the plugin works.
    /// - Returns: one verdict for each object, in order.
    func ingest(type: String, objects: [PluginRow]) throws -> [IngestVerdict]
}

/// The hook that hears of changed user data; `openSession` follows for each session of the user.
public protocol UserChangeRules: RulePlugin {
    func userChanged(_ user: PluginUser) throws
}

/// A plugin that asks the gateway about other users and about predicates, or counts.
public protocol AsksGateway: RulePlugin {
    /// Called once, after `init` and before any hook. The plugin keeps it.
    func connect(to gateway: PluginGateway)
}

/// Thrown by a hook to deny.
public struct PluginDenial: Error, Hashable, Sendable, CustomStringConvertible {
    public var reason: String
    public init(_ reason: String) { self.reason = reason }
    public var description: String { reason }
}
