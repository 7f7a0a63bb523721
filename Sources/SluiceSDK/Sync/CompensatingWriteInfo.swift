import SluiceCore
import SluiceReplica

/// One object whose writes were undone.
public struct CompensatingWriteInfo: Hashable, Sendable {
    /// Why, for programs. More may come with a newer gateway.
    public struct Cause: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        private init(_ cause: RefusalCause) { rawValue = cause.rawValue }

        /// The class is not written like others: its objects are embedded, or only sent.
        public static let notWritten = Cause(.notWritten)
        /// No subscription is open for the class.
        public static let noSubscription = Cause(.noSubscription)
        /// The object is, or would be, outside of what is subscribed to and may be read.
        public static let outsideView = Cause(.outsideView)
        /// It was there already when it was made, out of view.
        public static let existed = Cause(.existed)
        /// The user may not make objects of the class.
        public static let insert = Cause(.insert)
        /// The user may not delete objects of the class.
        public static let delete = Cause(.delete)
        /// The user may not write the object as it was, or as it would be.
        public static let writeRule = Cause(.writeRule)
        /// The user may not write `fields`.
        public static let fields = Cause(.fields)
        /// The indexed queryable field of an object cannot be changed by clients.
        public static let indexedField = Cause(.indexedField)
        /// `fields` hold points that subscriptions look for, and would hold something else.
        public static let point = Cause(.point)
        /// A rule of the app's own said no.
        public static let plugin = Cause(.plugin)
        /// A rule of the app's own could not be asked. The same write may be allowed later.
        public static let pluginFailed = Cause(.pluginFailed)
        /// The database refused a value.
        public static let database = Cause(.database)
        /// It edits an object whose creation was undone.
        public static let neverMade = Cause(.neverMade)
    }

    public let objectType: String
    private let key: Value
    /// For people.
    public let reason: String
    /// The number of the reason in docs/errors.md.
    public let code: Int
    /// Nil for objects of asymmetric classes, where `code` says it.
    public let cause: Cause?
    /// The fields at fault, sorted; empty where it is the whole object.
    public let fields: [String]
    private let wanted: [String: Value]

    init(_ write: RefusedWrite) {
        objectType = write.object.type
        key = write.object.key
        reason = write.reason
        code = Int(write.code)
        cause = write.cause.isEmpty ? nil : Cause(rawValue: write.cause)
        fields = write.fields
        wanted = write.values
    }

    public var primaryKey: AnyRealmValue { AnyRealmValue(scalar: key) }

    /// What the app wanted to write, by property, so that it is not lost: links as the keys of their objects, lists and sets as lists.
    /// Empty for a deletion, and for objects of asymmetric classes.
    public var values: [String: AnyRealmValue] { wanted.mapValues { AnyRealmValue(unmanaged: $0) } }
}
