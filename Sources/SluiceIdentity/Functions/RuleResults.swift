package import SluicePorts
package import SluiceValues

/// The results of functions that rules call, each stored for a minute, so that sessions of a user share them.
package struct RuleResults: Sendable {
    /// A call for a user. Changed data of the user make another key.
    package struct Key: Hashable, Sendable {
        package var call: RuleCall
        package var user: UserContext
        /// The generation of the plugin that runs the function; 0 for a service.
        package var generation: UInt64

        package init(_ call: RuleCall, for user: UserContext, generation: UInt64 = 0) {
            self.call = call
            self.generation = generation
            self.user = user
            // Those of an earlier plan decide nothing.
            self.user.functions = []
        }
    }

    /// The lifetime of a result, in nanoseconds.
    package static let lifetime: UInt64 = 60_000_000_000
    /// The maximum number of results. The oldest one gives way.
    package static let most = 10_000
    /// The maximum size of a result, in bytes of JSON.
    package static let bytes = 16 << 10

    private var results: [Key: JSON] = [:]
    /// The keys in the order of their expiry, from `first` on.
    private var order: [(key: Key, expires: UInt64)] = []
    private var first = 0

    package init() {}

    package var count: Int { results.count }

    /// Returns a result that has not expired; nil if there is none.
    package mutating func result(of key: Key, at now: UInt64) -> JSON? {
        removeExpired(at: now)
        return results[key]
    }

    /// Stores a result. One that is stored already stays, with its expiry.
    package mutating func store(_ result: JSON, of key: Key, at now: UInt64) {
        removeExpired(at: now)
        guard results[key] == nil else { return }
        if results.count >= Self.most { removeFirst() }
        results[key] = result
        order.append((key, now + Self.lifetime))
    }

    private mutating func removeExpired(at now: UInt64) {
        while first < order.count, order[first].expires <= now { removeFirst() }
    }

    private mutating func removeFirst() {
        results[order[first].key] = nil
        first += 1
        guard first >= 1_024 || first == order.count else { return }
        order.removeFirst(first)
        first = 0
    }
}
