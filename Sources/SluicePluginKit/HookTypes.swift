/// Who asks.
public struct PluginUser: Hashable, Sendable {
    public var id: String
    /// `normal`, `server` or `system`.
    public var type: String
    /// Metadata of the login provider.
    public var data: PluginValue
    /// The user's custom data document.
    public var customData: PluginValue
    public var identities: PluginValue

    public init(
        id: String, type: String = "normal", data: PluginValue = [:], customData: PluginValue = [:],
        identities: PluginValue = []
    ) {
        self.id = id
        self.type = type
        self.data = data
        self.customData = customData
        self.identities = identities
    }
}

/// One property of an object type.
public struct PluginProperty: Hashable, Sendable {
    /// `int bool string binary date float double decimal objectId uuid mixed`, `link:<Type>` or `embedded:<Type>`.
    public var type: String
    public var isOptional: Bool
    /// `none`, `list`, `set` or `dictionary`.
    public var collection: String

    public init(type: String, isOptional: Bool = false, collection: String = "none") {
        self.type = type
        self.isOptional = isOptional
        self.collection = collection
    }
}

/// One object type of the app's schema.
public struct PluginObjectType: Hashable, Sendable {
    /// `top_level`, `embedded` or `asymmetric`.
    public var kind: String
    public var primaryKey: String?
    public var properties: [String: PluginProperty]

    public init(kind: String = "top_level", primaryKey: String? = "_id", properties: [String: PluginProperty]) {
        self.kind = kind
        self.primaryKey = primaryKey
        self.properties = properties
    }

    /// Returns the property whose name has the same bytes.
    public func property(named name: String) -> PluginProperty? {
        guard let index = properties.index(forKey: name), ByteText(properties[index].key) == ByteText(name) else { return nil }
        return properties[index].value
    }
}

/// What `configure` is told.
public struct AppConfiguration: Hashable, Sendable {
    public var appID: String
    /// The files of the app directory, by path from its root.
    public var directory: [String: String]
    /// The plugin's own settings.
    public var config: PluginValue
    public var schema: [String: PluginObjectType]
    /// Fields that rules and subscriptions may name: everywhere, and by type.
    public var queryableFields: Set<String>
    public var queryableFieldsByType: [String: Set<String>]
    public var indexedField: String?
    /// `true` while clients may bring classes and fields (`sluice dev`).
    public var isDevelopment: Bool
    /// The members that users' custom data can have; nil if no table determines them.
    public var customDataFields: Set<String>?

    public init(
        appID: String = "", directory: [String: String] = [:], config: PluginValue = .null,
        schema: [String: PluginObjectType] = [:], queryableFields: Set<String> = [],
        queryableFieldsByType: [String: Set<String>] = [:], indexedField: String? = nil, isDevelopment: Bool = false,
        customDataFields: Set<String>? = nil
    ) {
        self.isDevelopment = isDevelopment
        self.customDataFields = customDataFields
        self.appID = appID
        self.directory = directory
        self.config = config
        self.schema = schema
        self.queryableFields = queryableFields
        self.queryableFieldsByType = queryableFieldsByType
        self.indexedField = indexedField
    }

    /// Whether rules may name the field; `_id` always.
    public func isQueryable(_ field: String, of type: String) -> Bool {
        field == "_id" || field == indexedField || queryableFields.contains(field)
            || queryableFieldsByType[type]?.contains(field) == true
    }
}

/// What a session may do with one type.
public struct TypeRules: Hashable, Sendable {
    /// Which objects are visible and which may be written, in the query language.
    public var read: String
    public var write: String
    public var insert: Bool
    public var delete: Bool
    /// Nil is all fields.
    public var readableFields: Set<String>?
    public var writableFields: Set<String>?
    /// As explanations name the rule that was taken.
    public var role: String
    /// Whether `WriteRules.checkWrites` is to be asked before writes.
    public var checkWrite: Bool
    /// Whether this allows anything by itself. False for a plugin that only takes away from what others allow: where no plugin grants
    /// a type, nobody has it. Gateways before 1.6 of the interface are not told.
    public var grants: Bool

    public init(
        read: String, write: String, insert: Bool, delete: Bool, readableFields: Set<String>? = nil,
        writableFields: Set<String>? = nil, role: String, checkWrite: Bool = false, grants: Bool = true
    ) {
        self.read = read
        self.write = write
        self.insert = insert
        self.delete = delete
        self.readableFields = readableFields
        self.writableFields = writableFields
        self.role = role
        self.checkWrite = checkWrite
        self.grants = grants
    }

    public static func denied(role: String) -> TypeRules {
        TypeRules(read: "FALSEPREDICATE", write: "FALSEPREDICATE", insert: false, delete: false, role: role)
    }
}

/// A subscription: a type and a query in canonical text.
public struct PluginQuery: Hashable, Sendable {
    public var type: String
    public var query: String

    public init(type: String, query: String) {
        self.type = type
        self.query = query
    }
}

/// One write before it happens.
public struct PluginWrite: Hashable, Sendable {
    public var type: String
    /// `insert`, `update` or `delete`.
    public var operation: String
    public var before: PluginRow?
    public var after: PluginRow?

    public init(type: String, operation: String, before: PluginRow?, after: PluginRow?) {
        self.type = type
        self.operation = operation
        self.before = before
        self.after = after
    }
}

public enum WriteVerdict: Hashable, Sendable {
    case allow
    /// The reason is what the user is told. The rule is for operators alone, with the plugin's name before it: what in the plugin
    /// decided, such as a role and a clause. The fields are the properties at fault, which apps find in the error. Gateways before 1.3 of
    /// the interface are not told the rule, those before 1.5 not the fields.
    case deny(reason: String, rule: String? = nil, fields: [String] = [])
    /// Allowed with these members set; the value is an object.
    case amend(PluginValue)
}

public enum IngestVerdict: Hashable, Sendable {
    case accept
    /// Stored with these members set; the value is an object. Costs less than `transform`, which says all of the object.
    case amend(PluginValue)
    /// Stored in this form instead.
    case transform(PluginValue)
    /// Stored as an object of another asymmetric type.
    case route(type: String, object: PluginValue)
    /// Stored as several objects instead, each of an asymmetric type: all of them or, when one does not fit, none.
    case split([Part])
    /// Acknowledged and forgotten; the reason is for the operator's log.
    case drop(reason: String)
    /// Kept apart with the reason.
    case reject(reason: String)

    /// One of the objects that an object is split into.
    public struct Part: Hashable, Sendable {
        public var type: String
        public var object: PluginValue

        public init(type: String, object: PluginValue) {
            self.type = type
            self.object = object
        }
    }
}
