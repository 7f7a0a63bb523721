import SluiceCore
import SluiceQuery
import SluiceReplica

/// The source of the elements of results.
enum CollectionOrigin {
    /// All objects of a class.
    /// The class's index in the file.
    case table(Int)
    /// The elements of a list, set or map.
    case place(_Place)
    /// The objects of a class that link to an object by a property.
    case links(owner: ObjectBase, type: Int, property: Int)
}

/// The kind of a collection's elements.
enum ElementKind {
    case objects(type: Int)
    case embedded(ModelSchema)
    case values(SluiceCore.PropertyType)

    static func of<E: RealmCollectionValue>(_ type: E.Type, at place: _Place, in core: RealmCore) -> ElementKind {
        if let type = E._linkedType(at: place, in: core) { return .objects(type: type) }
        if case .embedded = E._kind.type, let target = E._kind.target { return .embedded(ModelSchema.of(target)) }
        return .values(E._kind.type)
    }

    func model(_ core: RealmCore) -> ElementModel {
        switch self {
        case .objects(let type): .object(core.classes.schema(type))
        case .embedded(let schema): .object(schema)
        case .values: .scalar
        }
    }

    func query(_ core: RealmCore) -> ReplicaQuery {
        let schema = core.replica.schema
        switch self {
        case .objects(let type): return ReplicaQuery(type: type, in: schema)
        case .embedded(let model):
            guard let type = schema[model.name] else { throwRealmException("The Realm does not have the class \(model.name).") }
            return ReplicaQuery(type: -1, in: schema, bound: .all(type, in: schema))
        case .values(let type):
            let property = SluiceCore.Property(id: 0, name: ElementModel.selfName, type: type, isOptional: true)
            // No class can have such a name.
            let element = ObjectType(name: "[\(type)]", kind: .embedded, properties: [property], primaryKey: nil)
            let extended = SluiceCore.Schema(schema.types + [element])
            return ReplicaQuery(type: -1, in: extended, bound: .all(element, in: extended))
        }
    }
}
