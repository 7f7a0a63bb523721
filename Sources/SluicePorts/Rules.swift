package import SluiceCore
package import SluiceValues

/// The rule plugins, as the pipeline sees them. Every failure is an answer of its own: denied.
package protocol Rules: Sendable {
    /// Returns the session's permissions for the given classes. They depend on the results of functions that the plan has, and not on those
    /// of `user`.
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan
    /// Returns predicates to AND into the queries, in the order of `queries`. `TRUEPREDICATE` narrows nothing.
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String]
    /// Returns one verdict for each write, in the order of `writes`.
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict]
    /// Decides about asymmetric objects.
    /// - Returns: a verdict for each object; nil if no plugin decides about ingest, so that all are accepted unchanged.
    /// - Throws: if no decision was possible. The objects stay in the log and are retried.
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]?
}

/// The user of a session, as rules see it.
package struct UserContext: Hashable, Sendable {
    package var id: String
    /// `normal`, `server`, `system`.
    package var type: String
    /// The login provider's metadata, as JSON.
    package var data: JSON
    /// The user's custom data document, as JSON.
    package var customData: JSON
    package var identities: JSON
    /// The results of the functions that the rules call, from the latest plan of the session.
    package var functions: [RuleFunctionResult] = []

    package init(
        id: String, type: String = "normal", data: JSON = .object([]), customData: JSON = .object([]),
        identities: JSON = .array([])
    ) {
        self.id = id
        self.type = type
        self.data = data
        self.customData = customData
        self.identities = identities
    }
}

/// A call of a function by the rules, with its result.
package struct RuleFunctionResult: Hashable, Sendable {
    package var name: String
    /// The arguments as the rules have them, before names such as `%%user.id` are replaced.
    package var arguments: [JSON]
    package var result: JSON

    package init(name: String, arguments: [JSON], result: JSON) {
        self.name = name
        self.arguments = arguments
        self.result = result
    }
}

/// The fields of a class that a session may read and write.
package struct FieldRights: Hashable, Sendable {
    /// The readable fields; nil permits all.
    package var readable: Set<String>?
    /// The writable fields; nil permits all.
    package var writable: Set<String>?

    package init(readable: Set<String>? = nil, writable: Set<String>? = nil) {
        self.readable = readable
        self.writable = writable
    }
}

/// A session's permissions for one class. Predicates are query text, so that they can be ANDed into subscriptions and pushed into the index
/// and into SQL. No plugin is called per change.
package struct TypePlan: Hashable, Sendable {
    package var read: String
    package var write: String
    package var insert: Bool
    package var delete: Bool
    package var fields: FieldRights
    /// The role that applied, for explanations.
    package var role: String
    /// `true` if the plugin checks every write before it commits.
    package var checkWrite: Bool
    /// `true` if some plugin permits access. `false` if the plugins that answered only narrow the access that others permit.
    package var grants: Bool

    package init(
        read: String, write: String, insert: Bool = true, delete: Bool = true, fields: FieldRights = FieldRights(), role: String,
        checkWrite: Bool = false, grants: Bool = true
    ) {
        self.read = read
        self.write = write
        self.insert = insert
        self.delete = delete
        self.fields = fields
        self.role = role
        self.checkWrite = checkWrite
        self.grants = grants
    }

    /// `true` if both plans permit the same. Predicates compare by bytes, because texts that differ in normal form select other objects.
    package static func == (lhs: TypePlan, rhs: TypePlan) -> Bool {
        lhs.read.hasSameBytes(as: rhs.read) && lhs.write.hasSameBytes(as: rhs.write) && lhs.insert == rhs.insert
            && lhs.delete == rhs.delete && lhs.fields == rhs.fields && lhs.role == rhs.role && lhs.checkWrite == rhs.checkWrite
            && lhs.grants == rhs.grants
    }

    /// Returns the indices of the properties that the user must not read. The primary key is never among them.
    package func hidden(of type: ObjectType) -> Set<Int> {
        guard let readable = fields.readable else { return [] }
        return Set(type.properties.indices.filter { $0 != type.primaryKey && !readable.contains(bytesOf: type.properties[$0].name) })
    }

    /// Permits nothing: the plan after a missing rule, a failing plugin or an unknown key.
    package static let denied = TypePlan(
        read: "FALSEPREDICATE", write: "FALSEPREDICATE", insert: false, delete: false, role: "none")

    /// Permits everything. It applies without a configured rule plugin, which only development mode allows.
    package static let open = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "development")
}

/// The rules' answer for a session, by class. A missing class is denied.
package struct SessionPlan: Hashable, Sendable {
    package var types: [String: TypePlan]
    /// The results of functions that the permissions depend on. Later questions about the session's user have them too.
    package var functions: [RuleFunctionResult] = []

    package init(types: [String: TypePlan]) { self.types = types }
    package subscript(_ type: String) -> TypePlan { types[type] ?? .denied }
}

/// One write for a plugin to check, with the images before and after.
package struct ProposedWrite: Hashable, Sendable {
    package var type: ObjectType
    package var operation: Operation
    package var before: Row?
    package var after: Row?

    package init(type: ObjectType, operation: Operation, before: Row?, after: Row?) {
        self.type = type
        self.operation = operation
        self.before = before
        self.after = after
    }

    /// Creates the write from values by property name. A missing value is absent.
    package init(type: ObjectType, operation: Operation, before: [String: Value]?, after: [String: Value]?) {
        self.init(
            type: type, operation: operation, before: before.map { Row($0, of: type) }, after: after.map { Row($0, of: type) })
    }
}

package enum WriteVerdict: Hashable, Sendable {
    case allow
    /// Denied. The user receives the reason and the fields at fault. The rule (plugin and deciding part) is for operators alone.
    case deny(reason: String, rule: String, fields: [String] = [])
    /// Allowed with these values set.
    case amend([String: Value])
    /// Denied because a plugin refused the whole call (`pluginRefused`) or could not be called.
    case undecided(SluiceError)
}

/// One of the objects that replace a split asymmetric object.
package struct IngestPart: Hashable, Sendable {
    package var type: String
    package var values: [String: Value]

    package init(type: String, values: [String: Value]) {
        self.type = type
        self.values = values
    }
}

/// Asymmetric objects of one class for the ingest rules: flat rows, in the order of the class's properties.
package struct ObjectRows: Sendable {
    package var type: ObjectType
    package var buffer: RowBuffer
    package var rows: [RowRef]

    package init(type: ObjectType, buffer: RowBuffer, rows: [RowRef]) {
        self.type = type
        self.buffer = buffer
        self.rows = rows
    }

    /// Creates the rows from values by property name. A missing value is absent.
    package init(type: ObjectType, values: [[String: Value]]) {
        var buffer = RowBuffer()
        let rows = values.map { buffer.append(Row($0, of: type)) }
        self.init(type: type, buffer: buffer, rows: rows)
    }

    /// Returns an object's values by property name, without absent ones.
    package func values(_ index: Int) -> [String: Value] {
        buffer.withView(rows[index]) { view in
            var values: [String: Value] = [:]
            for (property, declared) in type.properties.enumerated() { values[declared.name] = view.value(property) }
            return values
        }
    }
}

package enum IngestVerdict: Hashable, Sendable {
    case accept
    /// Accepted with these values set.
    case amend([String: Value])
    /// Accepted with these values in place of all of the object's own.
    case transform([String: Value])
    /// Accepted as an object of another asymmetric class.
    case route(type: String, values: [String: Value])
    /// Replaced by several objects of asymmetric classes.
    case split([IngestPart])
    /// Discarded without an error.
    case drop(reason: String)
    case reject(reason: String)
}
