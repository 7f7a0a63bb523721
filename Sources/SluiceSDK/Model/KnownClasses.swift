import Synchronization

/// The model classes of the program, for Realms that name none.
enum KnownClasses {
    static var all: [ObjectBase.Type] { [] }
}

extension [ModelSchema] {
    /// The properties that some `LinkingObjects` is the inverse of: class and name in the file.
    var inverses: [String: Set<String>] {
        var inverses: [String: Set<String>] = [:]
        for schema in self where !(schema.objectClass is EmbeddedObject.Type) {
            for property in schema.properties where property.kind.isComputed {
                guard let target = property.kind.target, let origin = property.origin else { continue }
                let source = ModelSchema.of(target)
                guard let slot = source.slot(of: origin) else { continue }
                inverses[source.name, default: []].insert(source.properties[slot].column)
            }
        }
        return inverses
    }
}
