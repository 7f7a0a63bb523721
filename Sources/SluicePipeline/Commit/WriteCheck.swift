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
    /// Indices of those that the client says something of, whether they differ or not.
    var named: Set<Int>
    /// Whether the client makes an object that was there when it made it, out of its view.
    var isUnseen: Bool
}

/// Decides whether a session may do what it wants (`CW` of the server specification): pure, one object at a time.
///
/// A refusal tells the user what they tried and operators which role refused. Of an object that is out of the user's sight it says only that it is: neither
/// rules nor values of it are looked at before. And a field that the user can neither read nor write is refused whatever it holds, as
/// otherwise silence would tell that a guess was right (G5). What cannot be hidden is that a key is taken.
struct WriteCheck {
    private struct Bound {
        var rights: TypePlan
        var write: Predicate
        var view: Predicate?
        var indexed: Int?
        /// Queryable fields that hold points of GeoJSON.
        var points: [Int]
    }

    private enum Entry {
        case bound(Bound)
        /// The rules' predicate is none, or does not fit the class.
        case unusable(Refusal)
    }

    /// Why a write is undone.
    struct Refusal {
        var code: ErrorCode = .compensatingWrite
        var cause: RefusalCause
        /// For the user.
        var message: String
        /// The part of the role or the query that decided. For operators alone: what a rule says may be no business of a user's.
        var rule: String
        /// The fields at fault; empty where it is the whole object.
        var fields: [String] = []
    }

    private var entries: [String: Entry] = [:]
    private let fit: SchemaFit
    private let bound: @Sendable (String) -> RowBound

    /// A class whose predicate is none, or does not fit the schema, is denied.
    init(
        plan: SessionPlan, view: View, schema: AppSchema, types: Set<String>,
        bound: @escaping @Sendable (_ type: String) -> RowBound = { _ in RowBound() }
    ) {
        self.bound = bound
        fit = SchemaFit(schema: schema.schema)
        for name in types {
            guard let index = schema.schema.index(of: name) else { continue }
            let type = schema.schema.types[index]
            let rights = plan[name]
            do throws(SluiceError) {
                let bound = Bound(
                    rights: rights, write: try Query.parse(rights.write).bind(to: type),
                    view: view.writable[index] ?? view.type(index)?.predicate,
                    indexed: schema.fields.indexedProperty(of: type),
                    points: type.properties.indices.filter {
                        schema.schema.isPoint(type.properties[$0]) && schema.fields.contains(type.properties[$0].name, of: name)
                    })
                entries[name] = .bound(bound)
            } catch {
                entries[name] = .unusable(Refusal(unasked: error, about: "role \(rights.role), write predicate \(rights.write): "))
            }
        }
    }

    private subscript(_ type: String) -> Bound? { if case .bound(let bound)? = entries[type] { bound } else { nil } }

    /// Whether a plugin wants to be asked about writes of the type.
    func asksPlugin(_ type: String) -> Bool { self[type]?.rights.checkWrite ?? false }

    /// Whether the session may remember a deletion of what is not there any more, or not yet.
    func mayDelete(_ type: String) -> Bool {
        guard let bound = self[type] else { return false }
        return bound.view != nil && bound.rights.delete
    }

    /// Nil when the write is allowed; otherwise why not.
    func refusal(_ write: IntendedWrite) -> Refusal? {
        if case .unusable(let refusal)? = entries[write.object.type] { return refusal }
        let key = write.object.key.keyText
        guard let bound = self[write.object.type], write.type.kind == .topLevel else {
            return Refusal(
                code: .writeNotAllowed, cause: .notWritten,
                message: "Class \(write.object.type) cannot be written through changesets.", rule: "the class")
        }
        let name = "\(write.object.type) \(key)"
        guard let view = bound.view else {
            return Refusal(
                cause: .noSubscription,
                message: "No subscription is open for class \(write.object.type); the write to \(name) was undone.", rule: "no subscription"
            )
        }
        if let before = write.before, !before.matches(view) { return outside(name, view, before) }
        if let refusal = permission(write, bound, name) { return refusal }
        if write.before == nil, let after = write.after, !after.matches(view) { return outside(name, view, after) }
        // Only of what the session may see now.
        if write.isUnseen {
            return Refusal(
                cause: .existed, message: "\(name) existed already, outside of the query view in which it was created; it stays.",
                rule: "the view")
        }
        return nil
    }

    private func outside(_ name: String, _ view: Predicate, _ row: Row) -> Refusal {
        Refusal(
            cause: .outsideView, message: "\(name) is outside of the current query view; the write was undone.",
            rule: "the view, not met: \(Self.failing(view, row))")
    }

    /// Those parts of a predicate that a row does not meet.
    private static func failing(_ predicate: Predicate, _ row: Row?) -> String {
        let clauses = if case .and(let parts) = predicate.bound { parts } else { [predicate.bound] }
        return clauses.map { Predicate(type: predicate.type, bound: $0) }.filter { clause in row.map { !clause.matches($0) } ?? true }
            .map(\.canonicalText).joined(separator: ", ")
    }

    private func permission(_ write: IntendedWrite, _ bound: Bound, _ name: String) -> Refusal? {
        let role = bound.rights.role
        func denied(_ cause: RefusalCause, _ what: String, _ rule: String, fields: [String] = []) -> Refusal {
            Refusal(
                cause: cause, message: "Not allowed to \(what) \(name); the write was undone.",
                rule: "role \(role), \(rule)", fields: fields)
        }
        switch write.operation {
        case .insert:
            if !bound.rights.insert { return denied(.insert, "create", "insert") }
        case .delete:
            if !bound.rights.delete { return denied(.delete, "delete", "delete") }
        case .update:
            if let indexed = bound.indexed, write.changed.contains(indexed) {
                let field = write.type.properties[indexed].name
                return denied(
                    .indexedField, "change the indexed queryable field \(field) of", "indexed queryable field \(field)", fields: [field])
            }
        }
        // Both images: the write filter must hold before (CW-4) and still hold afterwards (CW-5).
        for image in [write.before, write.after] {
            if let image, !image.matches(bound.write) {
                return denied(.writeRule, "write", "write, not met: \(Self.failing(bound.write, image))")
            }
        }
        if let fields = bound.rights.writableFields, write.operation != .delete {
            let unseen = write.operation == .update ? write.named.intersection(bound.rights.hidden(of: write.type)) : []
            let names = write.changed.union(unseen).map { write.type.properties[$0].name }.filter { !fields.contains(bytesOf: $0) }.sorted()
            if let first = names.first {
                return denied(
                    .fields, "write field \(first) of", "writable fields without \(names.joined(separator: ", "))", fields: names)
            }
        }
        return brokenPoint(write, bound, name) ?? misfit(write)
    }

    /// What the table could hold, and nobody could read.
    func misfit(_ write: IntendedWrite) -> Refusal? {
        guard let after = write.after else { return nil }
        let name = "\(write.object.type) \(write.object.key.keyText)"
        let bound = bound(write.object.type)
        if !write.changed.isEmpty, after.isLarger(than: bound) {
            return Refusal(
                cause: .database,
                message: "\(name) would take more than the \(bound.text) that an object may have; the write was undone.",
                rule: "the size", fields: write.changed.map { write.type.properties[$0].name }.sorted())
        }
        for (index, property) in write.type.properties.enumerated() where write.operation == .insert || write.changed.contains(index) {
            guard let reason = fit.misfit(after[index] ?? .null, property, of: write.type) else { continue }
            return Refusal(
                cause: .database, message: "\(name) does not fit its class: \(reason); the write was undone.", rule: "the schema",
                fields: [property.name])
        }
        return nil
    }

    /// What is no point would be in no shape, and out of none.
    private func brokenPoint(_ write: IntendedWrite, _ bound: Bound, _ name: String) -> Refusal? {
        guard let after = write.after else { return nil }
        let broken = bound.points.filter { index in
            guard write.changed.contains(index), let value = after[index], !value.isNull else { return false }
            return value.place == nil
        }
        let fields = broken.map { write.type.properties[$0].name }.sorted()
        guard let first = fields.first else { return nil }
        return Refusal(
            cause: .point,
            message: "Field \(first) of \(name) would be no point of GeoJSON, which has the type \"Point\" and the coordinates longitude "
                + "(-180 to 180) and latitude (-90 to 90); the write was undone.",
            rule: "queryable point \(first)", fields: fields)
    }
}

extension WriteCheck.Refusal {
    /// Of what the rules could not be asked about. How they are built and what broke is no business of a user's.
    /// - Parameter subject: for operators.
    init(unasked error: SluiceError, about subject: String = "") {
        self.init(
            cause: .pluginFailed, message: "The rules of the server could not be asked about this write, so it was undone.",
            rule: "\(subject)\(error.code.name) (\(error.code.rawValue)): \(error.operatorText)")
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
