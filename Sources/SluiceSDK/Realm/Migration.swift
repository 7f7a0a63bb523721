import SluiceCore
import SluiceReplica

/// Migrates the objects of a local file to changed classes. Runs within the transaction that changes the file.
/// - Parameters:
///   - migration: Access to the objects before and after.
///   - oldSchemaVersion: The schema version of the file.
public typealias MigrationBlock = @Sendable (_ migration: Migration, _ oldSchemaVersion: UInt64) -> Void

/// An object in a migration. Its properties are read and set by name.
public typealias MigrationObject = DynamicObject

/// Receives an object before and after the migration. One of them is nil if the class is new or the object has no counterpart.
public typealias MigrationObjectEnumerateBlock = (_ oldObject: MigrationObject?, _ newObject: MigrationObject?) -> Void

/// The objects of a file during a change of its classes. Valid only within the migration block.
public struct Migration {
    let old: RealmCore
    let new: RealmCore
    let keys: Keys

    /// Properties that have been renamed to primary keys, by class. They map old objects to new ones.
    final class Keys {
        var renamed: [String: String] = [:]
    }

    /// The classes of the file, with the property names of the file.
    public var oldSchema: Schema { Realm(core: old).schema }
    /// The classes that the Realm is opened with.
    public var newSchema: Schema { Realm(core: new).schema }

    /// Calls the block for each object of a class, with its state before and its current state in the new schema.
    /// Properties with the same name and type in both schemas keep their values.
    /// For a new class, the block receives the objects that have been created.
    public func enumerateObjects(ofType typeName: String, _ block: MigrationObjectEnumerateBlock) {
        guard let oldType = old.classes.type(named: typeName) else {
            guard let type = new.classes.type(named: typeName) else { return }
            for key in new.reading.run(new.reading.all(type)) { block(nil, new.object(DynamicObject.self, type: type, key: key)) }
            return
        }
        let newType = new.classes.type(named: typeName)
        for key in old.reading.run(old.reading.all(oldType)) {
            guard let object = old.object(DynamicObject.self, type: oldType, key: key) else { continue }
            let successor = newType.flatMap { type in
                newKey(of: object, type).flatMap { new.object(DynamicObject.self, type: type, key: $0) }
            }
            block(object, successor)
        }
    }

    /// The primary key of an old object's successor; nil if it cannot be determined.
    private func newKey(of object: DynamicObject, _ newType: Int) -> Value? {
        let schema = new.classes.schema(newType)
        guard let row = object._row else { return nil }
        guard let slot = schema.primaryKeySlot else { return row.schema.hasHiddenKey ? row.key : nil }
        let name = keys.renamed[schema.name] ?? schema.properties[slot].column
        return row.schema.slot(of: name).flatMap { row.current($0) }
    }

    /// Creates an object in the new schema.
    @discardableResult
    public func create(_ typeName: String, value: Any = [String: Any]()) -> MigrationObject {
        Realm(core: new).dynamicCreate(typeName, value: value)
    }

    /// Deletes an object. Of the pair that `enumerateObjects` passes, only the new object can be deleted.
    public func delete(_ object: MigrationObject) { new.delete(object) }

    /// Deletes all objects of a class. A class outside the new schema is removed from the file.
    /// - Returns: `true` if the file had the class.
    @discardableResult
    public func deleteData(forType typeName: String) -> Bool {
        if let type = new.classes.type(named: typeName) {
            new.transactions.delete(type, new.reading.run(new.reading.all(type)))
            return old.classes.type(named: typeName) != nil
        }
        var isThere = false
        new.transactions.change { transaction throws(SluiceError) in isThere = try transaction.dropClass(typeName) }
        return isThere
    }

    /// Copies the values of a removed property to a new one, which may be the primary key.
    /// It is faster than setting each object's property and keeps links.
    /// Traps if either class or property does not exist, the old property still exists, or the types differ.
    public func renameProperty(onType typeName: String, from oldName: String, to newName: String) {
        guard let oldType = old.classes.type(named: typeName), let newType = new.classes.type(named: typeName) else {
            throwRealmException("Cannot rename properties for type '\(typeName)' because it does not exist.")
        }
        let (before, after) = (old.classes.schema(oldType), new.classes.schema(newType))
        guard let source = before.slot(of: oldName) else {
            throwRealmException("Cannot rename property '\(typeName).\(oldName)' because it does not exist.")
        }
        if after.slot(of: oldName) != nil {
            throwRealmException(
                "Cannot rename property '\(typeName).\(oldName)' to '\(newName)' because the source property still exists.")
        }
        guard let target = after.slot(of: newName) else {
            throwRealmException("Renamed property '\(typeName).\(newName)' does not exist.")
        }
        let (from, to) = (before.properties[source].core, after.properties[target].core)
        if from.type != to.type || from.collection != to.collection {
            throwRealmException(
                "Cannot rename property '\(typeName).\(oldName)' to '\(newName)' because it would change from type '\(from.type.name)' to '\(to.type.name)'."
            )
        }
        if target == after.primaryKeySlot {
            renameKey(oldType, newType, oldName)
        } else {
            copy(oldType, newType, from: source, to: target)
        }
    }

    /// Copies the values of a property to the objects with the same primary key.
    private func copy(_ oldType: Int, _ newType: Int, from source: Int, to target: Int) {
        for key in old.reading.run(old.reading.all(oldType)) {
            guard let object = old.object(DynamicObject.self, type: oldType, key: key), let newKey = newKey(of: object, newType),
                let value = object._row?.current(source)
            else { continue }
            new.transactions.change { transaction throws(SluiceError) in
                try transaction.set(type: newType, key: newKey, property: target, value)
            }
        }
    }

    /// Creates the new objects with the renamed primary key.
    /// The new table is empty: without the old key, the refit could not match the objects.
    private func renameKey(_ oldType: Int, _ newType: Int, _ oldName: String) {
        let (before, after) = (old.classes.schema(oldType), new.classes.schema(newType))
        keys.renamed[after.name] = oldName
        let kept = before.properties.indices.filter { slot in
            guard let match = after.properties.first(where: { $0.column == before.properties[slot].column }) else { return false }
            return match.kind.type == before.properties[slot].kind.type && match.kind.collection == before.properties[slot].kind.collection
        }
        for key in old.reading.run(old.reading.all(oldType)) {
            guard let row = old.reading.row(oldType, key), let slot = before.slot(of: oldName), let newKey = row[slot] else { continue }
            let values = Dictionary(uniqueKeysWithValues: kept.map { (before.properties[$0].column, row[$0] ?? .null) })
            new.transactions.change { transaction throws(SluiceError) in
                try transaction.create(type: newType, key: newKey, values: values)
            }
        }
    }
}
