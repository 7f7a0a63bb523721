import SluiceCore
import SluiceReplica

/// A compensating write: one object whose writes the server has rejected and reverted.
public struct CompensatingWriteInfo: Hashable, Sendable {
    /// The reason, for programs. Newer gateways may send other values.
    public struct Cause: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        private init(_ cause: RejectionCause) { rawValue = cause.rawValue }

        /// The class cannot be written: it is embedded or asymmetric.
        public static let notWritten = Cause(.notWritten)
        /// The class has no subscription.
        public static let noSubscription = Cause(.noSubscription)
        /// The object is, or would be, outside of the subscriptions or the readable objects.
        public static let outsideView = Cause(.outsideView)
        /// An object with the primary key already existed, outside of the view.
        public static let existed = Cause(.existed)
        /// The user may not insert objects of the class.
        public static let insert = Cause(.insert)
        /// The user may not delete objects of the class.
        public static let delete = Cause(.delete)
        /// The user may not write the object in its old or its new state.
        public static let writeRule = Cause(.writeRule)
        /// The user may not write `fields`.
        public static let fields = Cause(.fields)
        /// Clients cannot change the indexed queryable field of an object.
        public static let indexedField = Cause(.indexedField)
        /// `fields` hold points that geospatial subscriptions query, and the new value is not a point.
        public static let point = Cause(.point)
        /// A rule plugin denied the write.
        public static let plugin = Cause(.plugin)
        /// A rule plugin failed. The same write may be accepted later.
        public static let pluginFailed = Cause(.pluginFailed)
        /// The database rejected a value.
        public static let database = Cause(.database)
        /// No message can carry the write transaction. The device has undone it by itself.
        public static let tooLarge = Cause(.tooLarge)
        /// The write edits an object whose creation was rejected.
        public static let neverMade = Cause(.neverMade)
    }

    public let objectType: String
    private let key: Value
    /// The reason, for people.
    public let reason: String
    /// The error code; see docs/errors.md.
    public let code: Int
    /// The cause; nil for objects of asymmetric classes, where `code` gives the reason.
    public let cause: Cause?
    /// The fields at fault, sorted; empty if the whole object is.
    public let fields: [String]
    private let wanted: [String: Value]

    init(_ write: CompensatingWrite) {
        objectType = write.object.type
        key = write.object.key
        reason = write.reason
        code = Int(write.code)
        cause = write.cause.isEmpty ? nil : Cause(rawValue: write.cause)
        fields = write.fields
        wanted = write.values
    }

    /// The primary key of the object.
    public var primaryKey: AnyRealmValue { AnyRealmValue(scalar: key) }

    /// The rejected values by property, so that the app can keep them. Links are keys, lists and sets are lists.
    /// Empty for deletions, and for objects of asymmetric classes that have more than 64 KiB and that the server rejected.
    public var values: [String: AnyRealmValue] { wanted.mapValues { AnyRealmValue(unmanaged: $0) } }
}
