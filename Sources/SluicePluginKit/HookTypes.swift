/// The user of a session.
public struct PluginUser: Hashable, Sendable {
    public var id: String
    /// `normal`, `server` or `system`.
    public var type: String
    /// The login provider's metadata.
    public var data: PluginValue
    /// The user's custom data document.
    public var customData: PluginValue
    /// The user's identities: a list of objects.
    public var identities: PluginValue
    /// The results of the app's functions that roles call by `%function`.
    public var functions: [PluginFunctionResult]

    public init(
        id: String, type: String = "normal", data: PluginValue = [:], customData: PluginValue = [:],
        identities: PluginValue = [], functions: [PluginFunctionResult] = []
    ) {
        self.id = id
        self.type = type
        self.data = data
        self.customData = customData
        self.identities = identities
        self.functions = functions
    }
}

/// A call of a function of the app in the rules, with its result.
public struct PluginFunctionResult: Hashable, Sendable {
    public var name: String
    /// The arguments as the rules have them, before names such as `%%user.id` are replaced.
    public var arguments: [PluginValue]
    public var result: PluginValue

    public init(name: String, arguments: [PluginValue], result: PluginValue) {
        self.name = name
        self.arguments = arguments
        self.result = result
    }
}

/// One property of a class.
public struct PluginProperty: Hashable, Sendable {
    /// `int bool string binary date float double decimal objectId uuid mixed`, `link:<Class>` or `embedded:<Class>`.
    public var type: String
    /// `true` if the value, or an element of the collection, may be null. Default: `false`.
    public var isOptional: Bool
    /// `none`, `list`, `set` or `dictionary`.
    public var collection: String

    public init(type: String, isOptional: Bool = false, collection: String = "none") {
        self.type = type
        self.isOptional = isOptional
        self.collection = collection
    }
}

/// One class of the app's schema.
public struct PluginObjectType: Hashable, Sendable {
    /// `top_level`, `embedded` or `asymmetric`.
    public var kind: String
    /// The name of the primary key. Nil for embedded classes.
    public var primaryKey: String?
    /// The properties by name.
    public var properties: [String: PluginProperty]

    public init(kind: String = "top_level", primaryKey: String? = "_id", properties: [String: PluginProperty]) {
        self.kind = kind
        self.primaryKey = primaryKey
        self.properties = properties
    }

    /// Returns the property with exactly the bytes of this name, or nil.
    public func property(named name: String) -> PluginProperty? {
        guard let index = properties.index(forKey: name), ByteText(properties[index].key) == ByteText(name) else { return nil }
        return properties[index].value
    }
}

/// The app's configuration, which `configure` receives.
public struct AppConfiguration: Hashable, Sendable {
    public var appID: String
    /// The files of the app directory, by path from its root.
    public var directory: [String: String]
    /// The plugin's own settings.
    public var config: PluginValue
    /// The app's classes by name.
    public var schema: [String: PluginObjectType]
    /// Fields that rules and subscriptions may use: in all classes, and by class.
    public var queryableFields: Set<String>
    public var queryableFieldsByType: [String: Set<String>]
    /// The indexed queryable field. Nil if the app has none.
    public var indexedField: String?
    /// `true` while clients may add classes and fields (`sluice dev`). Default: `false`.
    public var isDevelopment: Bool
    /// The members that users' custom data can have. Nil if no table determines them.
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

    /// `true` if rules may use the field. `_id` always is queryable.
    public func isQueryable(_ field: String, of type: String) -> Bool {
        field == "_id" || field == indexedField || queryableFields.contains(field)
            || queryableFieldsByType[type]?.contains(field) == true
    }
}

/// A session's permissions for one class.
public struct TypeRules: Hashable, Sendable {
    /// The conditions for visible and for writable objects, in the query language.
    public var read: String
    public var write: String
    /// `true` if the session may create objects.
    public var insert: Bool
    /// `true` if the session may delete objects.
    public var delete: Bool
    /// The readable and the writable fields. Nil permits all.
    public var readableFields: Set<String>?
    public var writableFields: Set<String>?
    /// The name of the rule that applied, for explanations.
    public var role: String
    /// `true` if `WriteRules.checkWrites` checks writes to the class. Default: `false`.
    public var checkWrite: Bool
    /// `true` if these rules permit access by themselves. `false` for a plugin that only narrows the access that others permit. Without a
    /// plugin that grants a class, access to it is denied. Default: `true`.
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

    /// Returns rules that permit nothing.
    public static func denied(role: String) -> TypeRules {
        TypeRules(read: "FALSEPREDICATE", write: "FALSEPREDICATE", insert: false, delete: false, role: role)
    }
}

/// A subscription: a class and a query in canonical text.
public struct PluginQuery: Hashable, Sendable {
    public var type: String
    /// The canonical text of the query.
    public var query: String

    public init(type: String, query: String) {
        self.type = type
        self.query = query
    }
}

/// One write before it commits.
public struct PluginWrite: Hashable, Sendable {
    public var type: String
    /// `insert`, `update` or `delete`.
    public var operation: String
    /// The object before the write. Nil for an insert.
    public var before: PluginRow?
    /// The object after the write. Nil for a delete.
    public var after: PluginRow?

    public init(type: String, operation: String, before: PluginRow?, after: PluginRow?) {
        self.type = type
        self.operation = operation
        self.before = before
        self.after = after
    }
}

/// A plugin's verdict on a write. The first denial in the chain of plugins wins.
public enum WriteVerdict: Hashable, Sendable {
    case allow
    /// Denied. The user receives the reason. The rule is for operators alone, after the plugin's name: the part of the plugin that decided,
    /// such as a role and a clause. The fields are the properties at fault, which apps read from the error.
    case deny(reason: String, rule: String? = nil, fields: [String] = [])
    /// Allowed with these members set. The value is an object.
    case amend(PluginValue)
}

/// A plugin's verdict on an asymmetric object.
public enum IngestVerdict: Hashable, Sendable {
    case accept
    /// Stored with these members set. The value is an object. It costs less than `transform`, which sends the whole object.
    case amend(PluginValue)
    /// Stored in this form instead.
    case transform(PluginValue)
    /// Stored as an object of another asymmetric class.
    case route(type: String, object: PluginValue)
    /// Stored as several objects instead, each of an asymmetric class. If one of them does not fit, none is stored.
    case split([Part])
    /// Acknowledged and discarded. The reason goes to the operator's log.
    case drop(reason: String)
    /// Rejected and kept for operators with the reason.
    case reject(reason: String)

    /// One of the objects that replace a split object.
    public struct Part: Hashable, Sendable {
        public var type: String
        public var object: PluginValue

        public init(type: String, object: PluginValue) {
            self.type = type
            self.object = object
        }
    }
}
