import SluicePluginKit

/// The fields of a class that a role permits to read and to write.
struct FieldMasks {
    /// The permitted fields. Nil permits all. The primary key is part of every permission that is not empty, because an object cannot be
    /// identified without it.
    private(set) var readable: Set<String>?
    private(set) var writable: Set<String>?
    /// Paths to parts that must not be written, inside embedded objects with other writable parts.
    private(set) var guarded: [[String]] = []
    /// Parts of the role that sync does not support, for the log.
    private(set) var notes: [String] = []

    /// A field, or one inside an embedded object, with its own permissions.
    private struct Leaf {
        var path: [String]
        var read: Bool
        var write: Bool
        /// `true` if a collection contains the field, so that it may occur several times.
        var isInCollection: Bool
    }

    init(_ role: Role, _ type: PluginObjectType, _ schema: [String: PluginObjectType]) {
        let names = type.properties.keys.filter { $0 != type.primaryKey }.sorted()
        var (read, written): (Set<String>, Set<String>) = ([], [])
        for name in names {
            guard let property = type.property(named: name) else { continue }
            // A permission of the whole role overrides those of fields.
            var field = role.fields[name] ?? role.additionalFields
            (field.read, field.write) = (role.read ?? field.read, role.write ?? field.write)
            let leaves = Self.leaves(of: field, property, [name], isInCollection: false, schema, &notes)
            // Write permission implies read permission.
            let seen = leaves.filter { $0.read || $0.write }
            if seen.count == leaves.count {
                read.insert(name)
                if take(leaves, isAsymmetric: type.kind == "asymmetric") { written.insert(name) }
            } else if !seen.isEmpty {
                notes.append("\(name) may be read in part only, which sync cannot do: it is hidden")
            }
        }
        func mask(_ allowed: Set<String>, _ whole: Permission?) -> Set<String>? {
            if whole == .literal(true) { return nil }
            if allowed.isEmpty { return [] }
            return allowed.count == names.count ? nil : allowed.union([type.primaryKey ?? "_id"])
        }
        writable = mask(written, role.write)
        readable = role.write == .literal(true) ? nil : mask(read, role.read)
    }

    /// - Returns: `true` if the field may be written. Parts of it that may not are added to `guarded`.
    private mutating func take(_ leaves: [Leaf], isAsymmetric: Bool) -> Bool {
        let closed = leaves.filter { !$0.write }
        if closed.isEmpty { return true }
        guard closed.count < leaves.count else { return false }
        if isAsymmetric || leaves.contains(where: \.isInCollection) {
            let place = leaves.first?.path.first ?? ""
            notes.append("\(place) may be written in part only, which is not checked in lists and asymmetric objects: it may not at all")
            return false
        }
        guarded += closed.map(\.path)
        return true
    }

    /// Returns the field itself, or the fields inside it if it is an embedded object without its own permissions.
    private static func leaves(
        of field: FieldPermission, _ property: PluginProperty, _ path: [String], isInCollection: Bool,
        _ schema: [String: PluginObjectType], _ notes: inout [String]
    ) -> [Leaf] {
        let whole = Leaf(
            path: path, read: field.read == .literal(true), write: field.write == .literal(true), isInCollection: isInCollection)
        let hasInner = !field.fields.isEmpty || field.otherRead != nil || field.otherWrite != nil
        guard hasInner, field.read == nil || field.write == nil else { return [whole] }
        let place = path.joined(separator: ".")
        guard property.type.hasPrefix("embedded:"), let type = schema[String(property.type.dropFirst("embedded:".count))] else {
            notes.append("\(place) is no embedded object, so permissions inside it mean nothing")
            return [whole]
        }
        let isInCollection = isInCollection || property.collection != "none"
        return type.properties.sorted { $0.key < $1.key }.flatMap { name, property in
            var inner = field.fields[name] ?? FieldPermission(read: field.otherRead, write: field.otherWrite)
            (inner.read, inner.write) = (field.read ?? inner.read, field.write ?? inner.write)
            return leaves(
                of: inner, property, path + [name], isInCollection: isInCollection, schema, &notes)
        }
    }
}
