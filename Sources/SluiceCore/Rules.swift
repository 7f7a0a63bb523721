/// Who asks: what rules see of a user (`RULE` 8.4 of the server specification).
package struct UserContext: Hashable, Sendable {
    package var id: String
    /// `normal`, `server`, `system`.
    package var type: String
    /// Metadata of the login provider, as JSON.
    package var data: JSON
    /// The user's custom data document, as JSON.
    package var customData: JSON
    package var identities: JSON

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

/// What a session may do with one type. Predicates are query text, so that they can be ANDed into subscriptions, pushed
/// into the index and into SQL: nothing is called per change.
package struct TypePlan: Hashable, Sendable {
    package var read: String
    package var write: String
    package var insert: Bool
    package var delete: Bool
    /// Nil is all fields.
    package var readableFields: Set<String>?
    package var writableFields: Set<String>?
    /// The role that was taken, for explanations.
    package var role: String
    /// Whether the plugin wants to see every write before it happens.
    package var checkWrite: Bool
    /// Whether some plugin lets the user do this; not so when those that answered only narrow what others allow.
    package var grants: Bool

    package init(
        read: String, write: String, insert: Bool = true, delete: Bool = true, readableFields: Set<String>? = nil,
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

    /// `true` if both plans allow the same. Predicates compare by bytes: two that differ in a text's composition select other objects.
    package static func == (lhs: TypePlan, rhs: TypePlan) -> Bool {
        lhs.read.hasSameBytes(as: rhs.read) && lhs.write.hasSameBytes(as: rhs.write) && lhs.insert == rhs.insert
            && lhs.delete == rhs.delete && lhs.readableFields == rhs.readableFields && lhs.writableFields == rhs.writableFields
            && lhs.role == rhs.role && lhs.checkWrite == rhs.checkWrite && lhs.grants == rhs.grants
    }

    /// Indices of the properties that the user may not read; the primary key is never among them.
    package func hidden(of type: ObjectType) -> Set<Int> {
        guard let readableFields else { return [] }
        return Set(type.properties.indices.filter { $0 != type.primaryKey && !readableFields.contains(bytesOf: type.properties[$0].name) })
    }

    /// No rule, failing plugin, unknown key: nothing is allowed (G5).
    package static let denied = TypePlan(
        read: "FALSEPREDICATE", write: "FALSEPREDICATE", insert: false, delete: false, role: "none")

    /// Used where no rule plugin is configured at all, which only development mode allows.
    package static let open = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "development")
}

extension Set<String> {
    /// Returns `true` if the set has a member of the same bytes.
    package func contains(bytesOf name: String) -> Bool { firstIndex(of: name).map { self[$0].hasSameBytes(as: name) } ?? false }
}

/// The rules' answer for a session, by type. A type that is missing is denied.
package struct SessionPlan: Hashable, Sendable {
    package var types: [String: TypePlan]
    package init(types: [String: TypePlan]) { self.types = types }
    package subscript(_ type: String) -> TypePlan { types[type] ?? .denied }
}

/// One write that a plugin is asked about, with both images.
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

    /// The same from values by property name; what they leave out is absent.
    package init(type: ObjectType, operation: Operation, before: [String: Value]?, after: [String: Value]?) {
        self.init(
            type: type, operation: operation, before: before.map { Row($0, of: type) }, after: after.map { Row($0, of: type) })
    }
}

extension Row {
    /// Values by property name as a row; what they leave out is absent.
    package init(_ values: [String: Value], of type: ObjectType) { self.init(type.properties.map { values[$0.name] }) }
}

package enum WriteVerdict: Hashable, Sendable {
    case allow
    /// The reason and the fields at fault are for the user. The rule is for operators alone: the plugin, and what in it decided.
    case deny(reason: String, rule: String, fields: [String] = [])
    /// Allowed with these values set.
    case amend([String: Value])
    /// Denied, as a plugin denied the whole call (`pluginRefused`) or could not be asked.
    case undecided(SluiceError)
}

/// One of the objects that an asymmetric object is split into.
package struct IngestPart: Hashable, Sendable {
    package var type: String
    package var values: [String: Value]

    package init(type: String, values: [String: Value]) {
        self.type = type
        self.values = values
    }
}

/// Asymmetric objects of one type as the rules are asked about them: flat rows, in the order of the type's properties.
package struct ObjectRows: Sendable {
    package var type: ObjectType
    package var buffer: RowBuffer
    package var rows: [RowRef]

    package init(type: ObjectType, buffer: RowBuffer, rows: [RowRef]) {
        self.type = type
        self.buffer = buffer
        self.rows = rows
    }

    /// The same from values by property name; what they leave out is absent.
    package init(type: ObjectType, values: [[String: Value]]) {
        var buffer = RowBuffer()
        let rows = values.map { buffer.append(Row($0, of: type)) }
        self.init(type: type, buffer: buffer, rows: rows)
    }

    /// An object's values by property name; what is absent is left out.
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
    case transform([String: Value])
    case route(type: String, values: [String: Value])
    /// Several objects in its place, of asymmetric types.
    case split([IngestPart])
    case drop(reason: String)
    case reject(reason: String)
}
