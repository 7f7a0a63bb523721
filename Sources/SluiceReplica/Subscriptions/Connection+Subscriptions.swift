import SluiceCore
import SluiceValues

/// Reads of the subscription sets.
extension Connection {
    /// Returns the newest set, in any state.
    func latestSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try subscriptionSet(version: newestSubscriptionSet())
    }

    /// Returns the newest set's version, or 0 if there is none.
    func newestSubscriptionSet() throws(SluiceError) -> UInt64 {
        let newest = try statement("SELECT max(version) FROM _sluice_subscription_set")
        defer { newest.reset() }
        return try newest.step() ? newest.unsigned(0) : 0
    }

    /// Returns a set. A version that is no longer kept reads as superseded and empty, version 0 as complete and empty.
    func subscriptionSet(version: UInt64) throws(SluiceError) -> StoredSubscriptionSet {
        let state = try subscriptionState(version: version)
        let statement = try statement(
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
        let statement = try statement("SELECT changesets FROM _sluice_subscription_set WHERE version = ?")
        statement.bind(0, version)
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }

    private func time(_ statement: Statement, _ column: Int) -> Timestamp {
        if case .timestamp(let time)? = StoredValue.decode(statement.bytes(column)) { time } else { Timestamp(seconds: 0) }
    }

    func subscriptionState(version: UInt64) throws(SluiceError) -> SubscriptionState {
        if version == 0 { return .complete }
        let statement = try statement("SELECT state, code, message FROM _sluice_subscription_set WHERE version = ?")
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
}
