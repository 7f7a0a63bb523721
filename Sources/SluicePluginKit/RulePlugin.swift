/// A plugin written in Swift.
///
/// The gateway creates one instance when it loads the library, and calls it on one thread at a time. A type implements a hook by conforming
/// to its protocol: `SessionRules`, `SubscriptionRules`, `WriteRules`, `IngestRules`, `UserChangeRules`, `FunctionHandler`, `LoginHandler`.
/// For other hooks the gateway calls the next plugin of the chain.
///
/// A hook that throws `PluginDenial` denies with that reason. Any other error is a failure to decide, which also counts as a denial.
public protocol RulePlugin: AnyObject {
    /// The plugin's name in logs and errors.
    static var name: String { get }
    static var version: String { get }
    /// The keys that the plugin's configuration may have. Before `configure` the gateway checks the configuration and reports each error
    /// with its line. Nil, the default, permits any key, and an empty dictionary none.
    static var configKeys: [String: ConfigKey]? { get }

    /// Creates the instance. The gateway calls it once, before any other call.
    init(log: PluginLog)

    /// Applies the configuration. The gateway calls it before any other hook, and again when the app's schema changes. An edited app
    /// directory starts a new instance. Default: accepts everything.
    /// - Returns: Warnings for the gateway's log.
    /// - Throws: An error in the configuration. The plugin must then keep its previous configuration.
    func configure(_ app: AppConfiguration) throws -> [String]
}

extension RulePlugin {
    public static var configKeys: [String: ConfigKey]? { nil }
    public func configure(_ app: AppConfiguration) throws -> [String] { [] }
}

/// The hook that determines a session's read and write permissions.
public protocol SessionRules: RulePlugin {
    /// Returns the permissions of a session. The gateway calls it when a session starts and when its user's data changed.
    /// - Returns: The rules by class name. A missing class is denied.
    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules]
}

/// The hook that accepts, narrows or rejects subscription sets.
public protocol SubscriptionRules: RulePlugin {
    /// Checks a subscription set.
    /// - Returns: Queries to be ANDed to the requested ones. An empty list accepts the set as it is.
    func checkSubscription(user: PluginUser, queries: [PluginQuery]) throws -> [PluginQuery]
}

/// The hook that checks single writes, for the classes with `TypeRules.checkWrite`.
public protocol WriteRules: RulePlugin {
    /// Checks a batch of writes before they commit.
    /// - Returns: One verdict for each write, in order.
    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict]
}

/// The hook that checks asymmetric objects before they are stored.
public protocol IngestRules: RulePlugin {
    /// Checks a batch of objects.
    /// - Parameter objects: Objects of one class, in the order of their arrival. The gateway passes none to test the plugin.
    /// - Returns: One verdict for each object, in order.
    func ingest(type: String, objects: [PluginRow]) throws -> [IngestVerdict]
}

/// The hook for changed user data. The gateway then calls `openSession` for each session of the user.
public protocol UserChangeRules: RulePlugin {
    /// Receives the user with the new data. An error is logged and denies nothing.
    func userChanged(_ user: PluginUser) throws
}

/// A plugin that uses the gateway's services: other users' data, predicates and counters.
public protocol AsksGateway: RulePlugin {
    /// Receives the services, which the plugin stores. The gateway calls it once, after `init` and before any hook.
    func connect(to gateway: PluginGateway)
}

/// The error with which a hook denies. It is apart from `PluginError`, because a denial is an answer and not a failure.
public struct PluginDenial: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason of the denial.
    public var reason: String
    public init(_ reason: String) { self.reason = reason }
    public var description: String { reason }
}
