package import SluiceCore

/// The app's schema as a client of Realm's protocol declares it.
package enum RealmSchema {
    /// Returns the declarations of all classes, then those of all properties. Both are in the order of the names' bytes, so equal schemas
    /// have equal bytes.
    package static func instructions(of schema: Schema) -> [RealmInstruction] {
        let types = schema.types.sorted { isBefore($0.name, $1.name) }
        let columns = types.flatMap { type in
            let columns = type.properties.indices.filter { $0 != type.primaryKey }.map { type.realmColumn($0) }
            return columns.sorted { isBefore($0.name, $1.name) }
        }
        return types.map { .addTable($0.realmTable) } + columns.map { .addColumn($0) }
    }

    private static func isBefore(_ left: String, _ right: String) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
}

extension ObjectType {
    var realmTable: RealmTable {
        guard kind != .embedded, let primaryKey else { return RealmTable(name, kind, key: nil) }
        let key = properties[primaryKey]
        return RealmTable(name, kind, key: RealmTable.Key(key.name, key.type, isNullable: key.isOptional))
    }

    func realmColumn(_ index: Int) -> RealmColumn {
        let property = properties[index]
        return RealmColumn(name, property.name, property.type.realmType, isNullable: property.isRealmNullable, property.collection)
    }
}

extension PropertyType {
    /// The type in a declaration, where an embedded object is a link.
    var realmType: PropertyType { if case .embedded(let target) = self { .link(to: target) } else { self } }
}

extension Property {
    /// The flag for null in a declaration. Clients fix it for mixed values and links, whatever the model says.
    var isRealmNullable: Bool {
        switch type {
        case .mixed: true
        case .link, .embedded: collection == .none || collection == .dictionary
        default: isOptional
        }
    }
}
