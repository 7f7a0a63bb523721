package import SluiceValues

package enum SubscriptionState: Hashable, Sendable {
    /// Not sent, or not answered.
    case pending
    case bootstrapping
    case complete
    case error(code: UInt16, message: String)
    /// A newer set is complete, or this version is no longer kept.
    case superseded
}

/// One subscription of a set.
package struct StoredSubscription: Hashable, Sendable {
    /// The id of a subscription that gets its number when it is stored.
    package static let unnumbered: UInt64 = 0

    /// The id. It stays the same when the subscription's query is replaced.
    package var id: UInt64
    package var name: String?
    package var type: String
    /// The canonical query text.
    package var query: String
    package var created: Timestamp
    package var updated: Timestamp
    package var options: SubscriptionOptions

    package init(
        id: UInt64, name: String?, type: String, query: String, created: Timestamp, updated: Timestamp,
        options: SubscriptionOptions = SubscriptionOptions()
    ) {
        self.id = id
        self.name = name
        self.type = type
        self.query = query
        self.created = created
        self.updated = updated
        self.options = options
    }

    /// The subscription in a sentence: its name and class, or its query if it has no name.
    package var label: String {
        let text = name.map { "'\($0)'" } ?? "without a name, \(query.count > 80 ? "\(query.prefix(80))…" : query),"
        return "Subscription \(text) to \(type)"
    }
}

/// A version of the subscription set, as stored. Version 0 is the empty set of a new replica.
package struct StoredSubscriptionSet: Hashable, Sendable {
    package var version: UInt64
    package var state: SubscriptionState
    package var subscriptions: [StoredSubscription]
    /// The last changeset made before the set. Changesets up to it are uploaded before the set is sent, as they belong to the older view.
    package var changesetsBefore: UInt64

    package init(
        version: UInt64, state: SubscriptionState, subscriptions: [StoredSubscription], changesetsBefore: UInt64 = 0
    ) {
        self.version = version
        self.state = state
        self.subscriptions = subscriptions
        self.changesetsBefore = changesetsBefore
    }
}
