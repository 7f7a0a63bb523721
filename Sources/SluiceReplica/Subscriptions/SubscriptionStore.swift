package import SluiceCore

/// The subscription sets of a replica, as its writer sees them.
package struct SubscriptionStore: Sendable {
    let database: ReplicaDatabase
    private var connection: Connection { database.connection }

    /// Returns the newest set, in any state. Its subscriptions' `type` and `query` are those that `Subscribe` sends.
    package func latest() throws(SluiceError) -> StoredSubscriptionSet { try connection.latestSubscriptionSet() }

    /// Returns a set by version. One that is no longer kept is superseded and empty.
    package func set(version: UInt64) throws(SluiceError) -> StoredSubscriptionSet { try connection.subscriptionSet(version: version) }

    func state(version: UInt64) throws(SluiceError) -> SubscriptionState { try connection.subscriptionState(version: version) }

    /// Records the gateway's answer. A complete set supersedes all older ones. An error leaves older ones unchanged.
    package func setState(version: UInt64, _ state: SubscriptionState) throws(SluiceError) {
        if version == 0 { return }
        let statement = try connection.statement(
            "UPDATE _sluice_subscription_set SET state = ?, code = ?, message = ? WHERE version = ?")
        switch state {
        case .pending: statement.bind(0, "pending")
        case .bootstrapping: statement.bind(0, "bootstrapping")
        case .complete: statement.bind(0, "complete")
        case .superseded: statement.bind(0, "superseded")
        case .error(let code, let message):
            statement.bind(0, "error")
            statement.bind(1, Int64(code))
            statement.bind(2, message)
        }
        statement.bind(3, version)
        try statement.run()
        // A complete set supersedes all older ones, which are not kept.
        if state == .complete {
            try connection.execute(
                """
                DELETE FROM _sluice_subscription WHERE version < \(version);
                DELETE FROM _sluice_subscription_set WHERE version < \(version);
                """)
        }
        database.news.subscriptions = true
    }

    /// Stores a new version of the set, pending. Subscriptions without a number get one that was never used.
    func add(_ subscriptions: [StoredSubscription]) throws(SluiceError) -> StoredSubscriptionSet {
        let version = try connection.newestSubscriptionSet() + 1
        database.meta.subscription = max(database.meta.subscription, subscriptions.map(\.id).max() ?? 0)
        var subscriptions = subscriptions
        for index in subscriptions.indices where subscriptions[index].id == StoredSubscription.unnumbered {
            database.meta.subscription += 1
            subscriptions[index].id = database.meta.subscription
        }
        let set = try connection.statement("INSERT INTO _sluice_subscription_set VALUES (?, 'pending', NULL, NULL, ?)")
        set.bind(0, version)
        set.bind(1, database.meta.changeset)
        try set.run()
        for (position, subscription) in subscriptions.enumerated() {
            let row = try connection.statement("INSERT INTO _sluice_subscription VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
            row.bind(0, version)
            row.bind(1, Int64(position))
            row.bind(2, subscription.id)
            if let name = subscription.name { row.bind(3, name) } else { row.bindNull(3) }
            row.bind(4, subscription.type)
            row.bind(5, subscription.query)
            row.bind(6, StoredValue.encode(.timestamp(subscription.created)))
            row.bind(7, StoredValue.encode(.timestamp(subscription.updated)))
            row.bind(8, subscription.options.stored)
            try row.run()
        }
        database.news.subscriptions = true
        database.news.local = true
        return StoredSubscriptionSet(
            version: version, state: .pending, subscriptions: subscriptions, changesetsBefore: database.meta.changeset)
    }

    /// `true` if the newest set has a subscription on the class.
    func isSubscribed(_ type: String) throws(SluiceError) -> Bool {
        let statement = try connection.statement(
            """
            SELECT 1 FROM _sluice_subscription WHERE type = ?
            AND version = (SELECT max(version) FROM _sluice_subscription_set) LIMIT 1
            """)
        statement.bind(0, type)
        defer { statement.reset() }
        return try statement.step()
    }

    /// `true` if a subscription of the newest set includes objects of the class.
    func includesByLinks(_ type: String) throws(SluiceError) -> Bool {
        for subscription in try connection.latestSubscriptionSet().subscriptions
        where subscription.options.reaches(type, from: subscription.type, database.store.schema) {
            return true
        }
        return false
    }
}
