/// The reason of a write rejection, for programs. The raw values are words of the protocol (docs/protocol.md).
package enum RejectionCause: String, Hashable, Sendable, CaseIterable {
    /// The class is not written through changesets.
    case notWritten = "not_written"
    /// No subscription is open for the class.
    case noSubscription = "no_subscription"
    /// The object is, or would become, outside the subscriptions or the read rules.
    case outsideView = "outside_view"
    /// The created object already existed outside the view.
    case existed = "existed"
    /// The role may not create objects, or not delete them.
    case insert = "insert"
    case delete = "delete"
    /// The role's write rule does not hold for the object before or after the write.
    case writeRule = "write_rule"
    /// The role may not write some of the fields.
    case fields = "fields"
    /// The write changes the indexed queryable field of an existing object.
    case indexedField = "indexed_field"
    /// The write removes the GeoJSON point from a queryable field that holds points.
    case point = "point"
    /// A plugin denied the write, or could not be called.
    case plugin = "plugin"
    case pluginFailed = "plugin_failed"
    /// PostgreSQL rejected a value, or would have stored one that does not fit its property.
    case database = "database"
    /// No message can carry the transaction. The device itself reports this.
    case tooLarge = "too_large"
    /// The write edits an object whose creation was rejected.
    case neverMade = "never_made"
}
