import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues

/// A client's write to one object, merged with the stored state.
struct IntendedWrite {
    var object: ObjectKey
    var type: ObjectType
    var operation: Operation
    var before: Row?
    /// The row afterwards; nil for a delete.
    var after: Row?
    /// The indices of the properties that differ.
    var changed: Set<Int>
    /// The indices of the properties that the client names, changed or not.
    var named: Set<Int>
    var creation: Creation

    /// The part of a write that creates its object.
    enum Creation {
        case none
        /// The client creates the object, also if other changes precede or follow.
        case made
        /// The same, and the object existed already, outside of the client's view.
        case unseen
    }
}

/// Decides if a session may make a write. Pure; judges one object at a time.
///
/// A rejection shows the user the attempted write, and operators the deciding role. For an object outside of the user's view, it shows
/// only that fact, because neither rules nor values are evaluated before. A write to a field that the user can neither read nor write is
/// rejected for any value. Otherwise acceptance would confirm a guessed value.
///
/// A user who may not create objects of a class learns nothing about a key: a write to one without an object has the same result as one to
/// an object outside of the view, and only the client's own changes decide on it (`unreachable`). A user who may create them sees whether
/// the key is free.
struct WriteCheck {
    private struct Bound {
        var rights: TypePlan
        var write: Predicate
        var view: Predicate?
        var indexed: Int?
        /// The queryable fields that hold GeoJSON points.
        var points: [Int]
    }

    private enum Entry {
        case bound(Bound)
        /// The rules' predicate is invalid or does not fit the class.
        case unusable(Rejection)
    }

    /// The reason for rejecting a write.
    struct Rejection {
        var code: ErrorCode = .compensatingWrite
        var cause: RejectionCause
        /// The text for the user.
        var message: String
        /// The part of the role or the query that decided. For operators only, because a rule may be confidential.
        var rule: String
        /// The fields at fault; empty if the whole object is.
        var fields: [String] = []
    }

    private var entries: [String: Entry] = [:]
    private let fit: SchemaFit
    private let bound: @Sendable (String) -> RowBound

    /// Collects the rules of `types`. Denies a class whose predicate is invalid or does not fit the schema.
    init(
        permissions: SessionPermissions, view: View, types: Set<String>,
        bound: @escaping @Sendable (_ type: String) -> RowBound = { _ in RowBound() }
    ) {
        self.bound = bound
        let schema = permissions.schema
        fit = SchemaFit(schema: schema.schema)
        for name in types {
            guard let index = schema.schema.index(of: name) else { continue }
            let type = schema.schema.types[index]
            let rights = permissions[name]
            do throws(SluiceError) {
                let bound = Bound(
                    rights: rights, write: try permissions.write(type),
                    // For a limited query, `writable` is the query without its limit.
                    view: view.writable[index] ?? view.type(index)?.predicate,
                    indexed: schema.fields.indexedProperty(of: type),
                    points: type.properties.indices.filter {
                        schema.schema.isPoint(type.properties[$0]) && schema.fields.contains(type.properties[$0].name, of: name)
                    })
                entries[name] = .bound(bound)
            } catch {
                // A faulty rule denies its own class only.
                entries[name] = .unusable(Rejection(unasked: error, about: "role \(rights.role), write predicate \(rights.write): "))
            }
        }
    }

    private subscript(_ type: String) -> Bound? { if case .bound(let bound)? = entries[type] { bound } else { nil } }

    /// Returns `true` if a plugin reviews writes of the class.
    func asksPlugin(_ type: String) -> Bool { self[type]?.rights.checkWrite ?? false }

    /// Returns `true` if the session may record the delete of an object without a row.
    func mayDelete(_ type: String) -> Bool {
        guard let bound = self[type] else { return false }
        return bound.view != nil && bound.rights.delete
    }

    /// Returns the properties of a stored row that the session may not see: all of a row outside of its view. Without a row, those of the
    /// object that it would create: all if it may not.
    func hidden(in row: Row?, of type: ObjectType) -> Set<Int> {
        guard let bound = self[type.name], let view = bound.view, row?.matches(view) ?? bound.rights.insert else {
            return Set(type.properties.indices)
        }
        return row == nil ? [] : bound.rights.hidden(of: type)
    }

    /// Returns the reason to reject changes of an object that does not exist; nil for a user who may create it.
    func refusal(ofMissing object: ObjectKey, isCreation: Bool) -> Rejection? {
        switch entries[object.type] {
        case .unusable(let refusal)?: return refusal
        case .bound(let bound)? where bound.rights.insert: return nil
        case .bound(let bound)?: return bound.view == nil ? Self.unsubscribed(object) : Self.unreachable(object, bound, isCreation)
        case nil: return nil
        }
    }

    /// The rejection of changes of an object that is missing or outside of the view, for a user who may not create objects.
    private static func unreachable(_ object: ObjectKey, _ bound: Bound, _ isCreation: Bool) -> Rejection {
        let name = "\(object.type) \(object.key.keyText)"
        return isCreation ? uncreatable(name, bound) : outside(name, rule: "the view, or no object")
    }

    /// Returns the reason to reject the write; nil if it is allowed.
    func refusal(_ write: IntendedWrite) -> Rejection? {
        if case .unusable(let refusal)? = entries[write.object.type] { return refusal }
        let key = write.object.key.keyText
        guard let bound = self[write.object.type], write.type.kind == .topLevel else {
            return Rejection(
                code: .writeNotAllowed, cause: .notWritten,
                message: "Class \(write.object.type) cannot be written through changesets.", rule: "the class")
        }
        let name = "\(write.object.type) \(key)"
        guard let view = bound.view else { return Self.unsubscribed(write.object) }
        if !bound.rights.insert, write.before.map({ !$0.matches(view) }) ?? true {
            return Self.unreachable(write.object, bound, write.creation != .none)
        }
        // The view comes first: rules evaluated on a row outside of it could reveal its values.
        if let before = write.before, !before.matches(view) { return outside(name, view, before) }
        if let refusal = permission(write, bound, name) { return refusal }
        if write.before == nil, let after = write.after, !after.matches(view) { return outside(name, view, after) }
        // Last, so that it concerns only rows that the session may see now.
        if write.creation == .unseen {
            return Rejection(
                cause: .existed, message: "\(name) existed already, outside of the query view in which it was created; it stays.",
                rule: "the view")
        }
        return nil
    }

    private func outside(_ name: String, _ view: Predicate, _ row: Row) -> Rejection {
        Self.outside(name, rule: "the view, not met: \(Self.failing(view, row))")
    }

    private static func outside(_ name: String, rule: String) -> Rejection {
        Rejection(cause: .outsideView, message: "\(name) is outside of the current query view; the write was undone.", rule: rule)
    }

    private static func unsubscribed(_ object: ObjectKey) -> Rejection {
        let name = "\(object.type) \(object.key.keyText)"
        return Rejection(
            cause: .noSubscription, message: "No subscription is open for class \(object.type); the write to \(name) was undone.",
            rule: "no subscription")
    }

    private static func uncreatable(_ name: String, _ bound: Bound) -> Rejection {
        Rejection(
            cause: .insert, message: "Not allowed to create \(name); the write was undone.", rule: "role \(bound.rights.role), insert")
    }

    /// Returns the text of the clauses of a predicate that a row does not meet.
    private static func failing(_ predicate: Predicate, _ row: Row?) -> String {
        let clauses = if case .and(let parts) = predicate.bound { parts } else { [predicate.bound] }
        return clauses.map { Predicate(type: predicate.type, bound: $0) }.filter { clause in row.map { !clause.matches($0) } ?? true }
            .map(\.canonicalText).joined(separator: ", ")
    }

    private func permission(_ write: IntendedWrite, _ bound: Bound, _ name: String) -> Rejection? {
        let role = bound.rights.role
        func denied(_ cause: RejectionCause, _ what: String, _ rule: String, fields: [String] = []) -> Rejection {
            Rejection(
                cause: cause, message: "Not allowed to \(what) \(name); the write was undone.",
                rule: "role \(role), \(rule)", fields: fields)
        }
        switch write.operation {
        case .insert:
            if !bound.rights.insert { return Self.uncreatable(name, bound) }
        case .delete:
            if !bound.rights.delete { return denied(.delete, "delete", "delete") }
        case .update:
            if let indexed = bound.indexed, write.changed.contains(indexed) {
                let field = write.type.properties[indexed].name
                return denied(
                    .indexedField, "change the indexed queryable field \(field) of", "indexed queryable field \(field)", fields: [field])
            }
        }
        // The write filter must match before and after, so that a row can neither be captured nor released.
        for image in [write.before, write.after] {
            if let image, !image.matches(bound.write) {
                return denied(.writeRule, "write", "write, not met: \(Self.failing(bound.write, image))")
            }
        }
        if let fields = bound.rights.fields.writable, write.operation != .delete {
            // A named hidden field counts as changed: otherwise silence would confirm a guessed value.
            let unseen = write.operation == .update ? write.named.intersection(bound.rights.hidden(of: write.type)) : []
            let names = write.changed.union(unseen).map { write.type.properties[$0].name }.filter { !fields.contains(bytesOf: $0) }.sorted()
            if let first = names.first {
                return denied(
                    .fields, "write field \(first) of", "writable fields without \(names.joined(separator: ", "))", fields: names)
            }
        }
        return brokenPoint(write, bound, name) ?? misfit(write)
    }

    /// Returns a rejection if the table could store the row and readers could not decode it, or if it exceeds the size bound.
    func misfit(_ write: IntendedWrite) -> Rejection? {
        guard let after = write.after else { return nil }
        let name = "\(write.object.type) \(write.object.key.keyText)"
        let bound = bound(write.object.type)
        // Only a change can make an object too large.
        if !write.changed.isEmpty, after.isLarger(than: bound) {
            return Rejection(
                cause: .database,
                message: "\(name) would take more than the \(bound.text) that an object may have; the write was undone.",
                rule: "the size", fields: write.changed.map { write.type.properties[$0].name }.sorted())
        }
        // Only changed values are checked, so that an earlier misfit does not block other edits.
        for (index, property) in write.type.properties.enumerated() where write.operation == .insert || write.changed.contains(index) {
            guard let reason = fit.misfit(after[index] ?? .null, property, of: write.type) else { continue }
            return Rejection(
                cause: .database, message: "\(name) does not fit its class: \(reason); the write was undone.", rule: "the schema",
                fields: [property.name])
        }
        return nil
    }

    /// Rejects a queryable point without valid coordinates, which would be neither inside nor outside of any shape.
    private func brokenPoint(_ write: IntendedWrite, _ bound: Bound, _ name: String) -> Rejection? {
        guard let after = write.after else { return nil }
        let broken = bound.points.filter { index in
            guard write.changed.contains(index), let value = after[index], !value.isNull else { return false }
            return value.place == nil
        }
        let fields = broken.map { write.type.properties[$0].name }.sorted()
        guard let first = fields.first else { return nil }
        return Rejection(
            cause: .point,
            message: "Field \(first) of \(name) would be no point of GeoJSON, which has the type \"Point\" and the coordinates longitude "
                + "(-180 to 180) and latitude (-90 to 90); the write was undone.",
            rule: "queryable point \(first)", fields: fields)
    }
}

extension WriteCheck.Rejection {
    /// Creates the rejection of a write that the rules could not judge. It hides the cause from the user.
    /// - Parameter subject: A prefix for operators.
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
    /// The key as messages print it: ObjectId and UUID wrapped in their type's name, strings quoted, integers bare.
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
