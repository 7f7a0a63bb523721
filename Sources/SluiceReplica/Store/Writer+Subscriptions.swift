import SluiceCore

/// The subscription store.
extension Writer {
    func latestSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        let newest = try connection.statement("SELECT max(version) FROM _sluice_subscription_set")
        let version = try newest.step() ? newest.unsigned(0) : 0
        newest.reset()
        return try subscriptionSet(version: version)
    }

    /// A version that is not kept any more reads as superseded and empty; version 0 as complete and empty.
    func subscriptionSet(version: UInt64) throws(SluiceError) -> StoredSubscriptionSet {
        let state = try subscriptionState(version: version)
        let statement = try connection.statement(
            "SELECT id, name, type, query, created, updated, options FROM _sluice_subscription WHERE version = ? ORDER BY position")
        statement.bind(0, version)
        defer { statement.reset() }
        var subscriptions: [StoredSubscription] = []
        while try statement.step() {
            subscriptions.append(
                StoredSubscription(
                    id: statement.unsigned(0), name: statement.isNull(1) ? nil : statement.string(1),
                    type: statement.string(2), query: statement.string(3), created: time(statement, 4),
                    updated: time(statement, 5), options: SubscriptionOptions(stored: statement.bytes(6))))
        }
        return StoredSubscriptionSet(
            version: version, state: state, subscriptions: subscriptions, changesetsBefore: try changesets(before: version))
    }

    private func changesets(before version: UInt64) throws(SluiceError) -> UInt64 {
        let statement = try connection.statement("SELECT changesets FROM _sluice_subscription_set WHERE version = ?")
        statement.bind(0, version)
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }

    private func time(_ statement: Statement, _ column: Int) -> Timestamp {
        if case .timestamp(let time)? = StoredValue.decode(statement.bytes(column)) { time } else { Timestamp(seconds: 0) }
    }

    func subscriptionState(version: UInt64) throws(SluiceError) -> SubscriptionState {
        if version == 0 { return .complete }
        let statement = try connection.statement("SELECT state, code, message FROM _sluice_subscription_set WHERE version = ?")
        statement.bind(0, version)
        defer { statement.reset() }
        guard try statement.step() else { return .superseded }
        switch statement.string(0) {
        case "pending": return .pending
        case "bootstrapping": return .bootstrapping
        case "complete": return .complete
        case "error": return .error(code: UInt16(clamping: statement.int(1)), message: statement.string(2))
        default: return .superseded
        }
    }

    func setSubscriptionState(version: UInt64, _ state: SubscriptionState) throws(SluiceError) {
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
        if state == .complete {
            try connection.execute(
                """
                DELETE FROM _sluice_subscription WHERE version < \(version);
                DELETE FROM _sluice_subscription_set WHERE version < \(version);
                """)
        }
        news.subscriptions = true
    }

    /// Stores a new version of the set, pending.
    func addSubscriptionSet(_ subscriptions: [StoredSubscription]) throws(SluiceError) -> UInt64 {
        let version = try latestSubscriptionSet().version + 1
        let set = try connection.statement("INSERT INTO _sluice_subscription_set VALUES (?, 'pending', NULL, NULL, ?)")
        set.bind(0, version)
        set.bind(1, meta.changeset)
        try set.run()
        meta.subscription = max(meta.subscription, subscriptions.map(\.id).max() ?? 0)
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
        news.subscriptions = true
        news.local = true
        return version
    }

    /// Whether the newest set has a subscription on the class.
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

    /// Whether objects of the class come along with a subscription of the newest set.
    func comesAlong(_ type: String) throws(SluiceError) -> Bool {
        for subscription in try latestSubscriptionSet().subscriptions
        where subscription.options.reaches(type, from: subscription.type, store.schema) {
            return true
        }
        return false
    }
}
