import SluiceCore
import SluiceReplica

/// The classes of a Realm and their indices in the file. Constant, so any thread may use it.
final class ClassTable {
    /// The classes of this Realm.
    let schemas: [ModelSchema]
    /// The schema of the file, which may have more classes.
    private let fileSchema: SluiceCore.Schema
    /// The index of each class in the file.
    private let types: [ObjectIdentifier: Int]
    /// The classes by their index in the file.
    private let schemasByType: [Int: ModelSchema]

    /// Creates the table of some classes.
    /// - Parameter isExact: `true` if the file must have the same properties as the classes. A migration opens files that differ.
    /// - Throws: `schemaMismatch` if the file is open with other classes, or if two classes of one name differ.
    init(_ schemas: [ModelSchema], in replica: Replica, isExact: Bool) throws {
        var types: [ObjectIdentifier: Int] = [:]
        var schemasByType: [Int: ModelSchema] = [:]
        let isSynced = replica.isSynced
        for schema in schemas {
            let index = replica.schema.index(of: schema.name)
            guard let index, !isExact || replica.schema.types[index] == schema.objectType(isSynced: isSynced) else {
                if let other = schemas.first(where: { $0.name == schema.name && $0 !== schema }) {
                    let names = [other, schema].map { String(reflecting: $0.objectClass) }.sorted().joined(separator: " and ")
                    throw Realm.Error(
                        .schemaMismatch,
                        "Two classes have the name \(schema.name): \(names). Rename one, or name the classes of the Realm in objectTypes.")
                }
                throw Realm.Error(
                    .schemaMismatch, "The Realm file is already open without the class \(schema.name); open it with the same objectTypes.")
            }
            types[ObjectIdentifier(schema.objectClass)] = index
            schemasByType[index] = schema
        }
        self.schemas = schemas
        self.types = types
        self.schemasByType = schemasByType
        fileSchema = replica.schema
    }

    /// The index of a class. Traps if the Realm does not have the class.
    func type(of objectClass: ObjectBase.Type) -> Int {
        guard let type = types[ObjectIdentifier(objectClass)] else {
            throwRealmException("Object type '\(objectClass.className())' is not managed by the Realm: add it to objectTypes.")
        }
        return type
    }

    /// The class that a property links to, by name, since a dynamic object's property has no class. Traps if it is not in the Realm.
    func type(linkedBy kind: _PropertyKind) -> Int {
        guard case .link(let name) = kind.type, let type = type(named: name) else {
            throwRealmException("The Realm does not have the class that the property links to.")
        }
        return type
    }

    /// The index of a class by name; nil if the Realm does not have it.
    func type(named name: String) -> Int? {
        guard let index = fileSchema.index(of: name), schemasByType[index] != nil else { return nil }
        return index
    }

    /// The schema of a class. Traps if the Realm does not have the class.
    func schema(_ type: Int) -> ModelSchema {
        guard let schema = schemasByType[type] else { throwRealmException("The Realm does not have the class with number \(type).") }
        return schema
    }
}
