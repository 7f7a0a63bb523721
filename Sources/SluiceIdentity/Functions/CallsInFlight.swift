/// The running calls of functions, which are bounded by function, by user and by plugin.
package struct CallsInFlight: Hashable, Sendable {
    /// The maximum number of running calls of a function.
    package static let perFunction = 64
    /// The maximum number of running calls of a user. The gateway itself has no such bound.
    package static let perUser = 8
    /// The maximum number of calls of users that run in a plugin or wait there.
    package static let perPlugin = 64

    /// A reached bound.
    package enum Bound: Hashable, Sendable { case function, user, plugin }

    private var functions: [String: Int] = [:]
    private var users: [String: Int] = [:]
    private var plugins: [String: Int] = [:]

    package init() {}

    /// Counts a call.
    ///
    /// - Parameters:
    ///   - user: The calling user; nil for the gateway itself.
    ///   - plugin: The plugin that runs the function; nil for a service.
    /// - Returns: The bound that is reached; nil for none. The call must not begin if there is one.
    package mutating func begin(_ function: String, user: String?, plugin: String? = nil) -> Bound? {
        guard functions[function, default: 0] < Self.perFunction else { return .function }
        if let user {
            guard users[user, default: 0] < Self.perUser else { return .user }
            if let plugin {
                guard plugins[plugin, default: 0] < Self.perPlugin else { return .plugin }
                plugins[plugin, default: 0] += 1
            }
            users[user, default: 0] += 1
        }
        functions[function, default: 0] += 1
        return nil
    }

    /// Notes the end of a call that began.
    package mutating func end(_ function: String, user: String?, plugin: String? = nil) {
        Self.decrease(&functions, function)
        guard let user else { return }
        Self.decrease(&users, user)
        if let plugin { Self.decrease(&plugins, plugin) }
    }

    private static func decrease(_ counts: inout [String: Int], _ name: String) {
        let left = (counts[name] ?? 1) - 1
        counts[name] = left > 0 ? left : nil
    }
}
