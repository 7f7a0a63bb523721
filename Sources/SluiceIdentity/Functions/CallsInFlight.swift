/// The running calls of functions, which are bounded by function and by user.
package struct CallsInFlight: Hashable, Sendable {
    /// The maximum number of running calls of a function.
    package static let perFunction = 64
    /// The maximum number of running calls of a user. The gateway itself has no such bound.
    package static let perUser = 8

    private var functions: [String: Int] = [:]
    private var users: [String: Int] = [:]

    package init() {}

    /// Counts a call.
    ///
    /// - Parameter user: The calling user; nil for the gateway itself.
    /// - Returns: `false` if a bound is reached. The call must not begin then.
    package mutating func begin(_ function: String, user: String?) -> Bool {
        guard functions[function, default: 0] < Self.perFunction else { return false }
        if let user {
            guard users[user, default: 0] < Self.perUser else { return false }
            users[user, default: 0] += 1
        }
        functions[function, default: 0] += 1
        return true
    }

    /// Notes the end of a call that began.
    package mutating func end(_ function: String, user: String?) {
        Self.decrease(&functions, function)
        if let user { Self.decrease(&users, user) }
    }

    private static func decrease(_ counts: inout [String: Int], _ name: String) {
        let left = (counts[name] ?? 1) - 1
        counts[name] = left > 0 ? left : nil
    }
}
