import SluiceCore
import SluiceQuery

/// What a client wants to do to one object, merged with what is stored.
struct IntendedWrite {
    var object: ObjectKey
    var type: ObjectType
    var operation: Operation
    var before: Row?
    /// Nil for a delete.
    var after: Row?
    /// Indices of the properties that differ.
    var changed: Set<Int>
    /// Whether the client makes an object that was there when it made it, out of its view.
    var isUnseen: Bool
}

/// Decides whether a session may do what it wants (`CW` of the server specification): pure, one object at a time.
///
/// A refusal says what the user tried and which role refused; it never says whether an object that the user may not see
/// exists (G5).
struct WriteCheck {
    private struct Bound {
        var rights: TypePlan
        var write: Predicate
        var view: Predicate?
        var indexed: Int?
    }

    private let bound: [String: Bound]

    /// - Throws: an error of the query language when a rule's predicate does not fit the schema, which denies everything.
    init(plan: SessionPlan, view: View, schema: AppSchema, types: Set<String>) throws(SluiceError) {
        var bound: [String: Bound] = [:]
        for name in types {
            guard let index = schema.schema.index(of: name) else { continue }
            let type = schema.schema.types[index]
            let rights = plan[name]
            bound[name] = Bound(
                rights: rights, write: try Query.parse(rights.write).bind(to: type),
                view: view.writable[index] ?? view.type(index)?.predicate,
                indexed: schema.fields.indexedProperty(of: type))
        }
        self.bound = bound
    }

    /// Whether a plugin wants to be asked about writes of the type.
    func asksPlugin(_ type: String) -> Bool { bound[type]?.rights.checkWrite ?? false }

    /// Nil when the write is allowed; otherwise why not.
    func refusal(_ write: IntendedWrite) -> SluiceError? {
        let key = write.object.key.keyText
        guard let bound = bound[write.object.type], write.type.kind == .topLevel else {
            return SluiceError(.writeNotAllowed, "Class \(write.object.type) cannot be written through changesets.")
        }
        let name = "\(write.object.type) \(key)"
        guard let view = bound.view else {
            return SluiceError(
                .compensatingWrite, "No subscription is open for class \(write.object.type); the write to \(name) was undone.")
        }
        if let refusal = permission(write, bound, name) { return refusal }
        let seen = write.before ?? write.after
        guard let seen, seen.matches(view) else {
            return SluiceError(.compensatingWrite, "\(name) is outside of the current query view; the write was undone.")
        }
        // Only of what the session may see now.
        if write.isUnseen {
            return SluiceError(.compensatingWrite, "\(name) existed already, outside of the query view in which it was created; it stays.")
        }
        return nil
    }

    private func permission(_ write: IntendedWrite, _ bound: Bound, _ name: String) -> SluiceError? {
        let role = bound.rights.role
        func denied(_ what: String) -> SluiceError {
            SluiceError(.compensatingWrite, "Role \(role) may not \(what) \(name); the write was undone.")
        }
        switch write.operation {
        case .insert:
            if !bound.rights.insert { return denied("create") }
        case .delete:
            if !bound.rights.delete { return denied("delete") }
        case .update:
            if let indexed = bound.indexed, write.changed.contains(indexed) {
                let field = write.type.properties[indexed].name
                return denied("change the indexed queryable field \(field) of")
            }
        }
        // Both images: the write filter must hold before (CW-4) and still hold afterwards (CW-5).
        for image in [write.before, write.after] {
            if let image, !image.matches(bound.write) { return denied("write") }
        }
        if let fields = bound.rights.writableFields, write.operation != .delete {
            let names = write.changed.map { write.type.properties[$0].name }.filter { !fields.contains($0) }.sorted()
            if let first = names.first { return denied("write field \(first) of") }
        }
        return nil
    }
}

extension Row {
    func matches(_ predicate: Predicate) -> Bool {
        var buffer = RowBuffer()
        let row = buffer.append(self)
        return buffer.withView(row) { predicate.matches($0) }
    }
}

extension Value {
    /// A key as messages print it, by type: ObjectId and UUID wrapped in their type's name, strings quoted, integers bare
    /// (server specification 9.1).
    var keyText: String {
        switch self {
        case .int(let v): String(v)
        case .string(let v): "\"\(v)\""
        case .objectId(let v): "ObjectID(\"\(v)\")"
        case .uuid(let v): "UUID(\"\(v)\")"
        default: "\(self)"
        }
    }
}
