/// Why a write was undone, for programs (`CW` of the server specification). The words are the protocol's; docs/protocol.md has them.
package enum RefusalCause: String, Hashable, Sendable, CaseIterable {
    /// The class is not written through changesets.
    case notWritten = "not_written"
    /// No subscription is open for the class (CW-1).
    case noSubscription = "no_subscription"
    /// The object is, or would be, outside of subscriptions and read rules (CW-2, CW-3).
    case outsideView = "outside_view"
    /// It was there when it was made, out of view.
    case existed = "existed"
    /// The role may not create, or not delete (CW-4).
    case insert = "insert"
    case delete = "delete"
    /// The role's write rule does not hold for the object before or after (CW-4, CW-5).
    case writeRule = "write_rule"
    /// The role may not write some of the fields (CW-4).
    case fields = "fields"
    /// The indexed queryable field of an object that is there (CW-6).
    case indexedField = "indexed_field"
    /// A queryable field that holds points of GeoJSON would hold none (CW-7).
    case point = "point"
    /// A plugin that is asked about writes said no, or could not be asked.
    case plugin = "plugin"
    case pluginFailed = "plugin_failed"
    /// PostgreSQL refused a value, or would have taken one that does not fit its property.
    case database = "database"
    /// No message can carry the transaction. The device says so itself.
    case tooLarge = "too_large"
    /// It edits an object whose creation was undone.
    case neverMade = "never_made"
}
