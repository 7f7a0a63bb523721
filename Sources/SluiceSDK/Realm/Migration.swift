import SluiceCore
import SluiceReplica

/// Makes the objects of a local file fit changed classes; called in the one transaction that changes the file.
/// - Parameters:
///   - migration: the objects before and after.
///   - oldSchemaVersion: of the file.
public typealias MigrationBlock = @Sendable (_ migration: Migration, _ oldSchemaVersion: UInt64) -> Void

/// An object in a migration: its properties are read and set by name.
public typealias MigrationObject = DynamicObject

/// Called with an object as it was and as it becomes; nil where it is not.
public typealias MigrationObjectEnumerateBlock = (_ oldObject: MigrationObject?, _ newObject: MigrationObject?) -> Void

/// The objects of a file while its classes change. It is of use within the migration block only.
public struct Migration {
    let old: RealmCore
    let new: RealmCore
    let keys: Keys

    /// Properties that have been renamed into primary keys, by class: the objects before are found by them.
    final class Keys {
        var renamed: [String: String] = [:]
    }

    /// The classes that the file was written with. Properties have the names that they have in the file.
    public var oldSchema: Schema { Realm(core: old).schema }
    /// The classes that the Realm is opened with.
    public var newSchema: Schema { Realm(core: new).schema }

    /// Goes through the objects of a class as they were, and as they are with what the block has changed already; properties that
    /// are in both with the same type have their values. For a class that is new, through the objects that have been created.
    public func enumerateObjects(ofType typeName: String, _ block: MigrationObjectEnumerateBlock) {
        guard let oldType = old.type(named: typeName) else {
            guard let type = new.type(named: typeName) else { return }
            for key in new.run(new.all(type)) { block(nil, new.object(DynamicObject.self, type: type, key: key)) }
            return
        }
        let newType = new.type(named: typeName)
        for key in old.run(old.all(oldType)) {
            guard let object = old.object(DynamicObject.self, type: oldType, key: key) else { continue }
            let successor = newType.flatMap { type in
                newKey(of: object, type).flatMap { new.object(DynamicObject.self, type: type, key: $0) }
            }
            block(object, successor)
        }
    }

    /// The primary key that an old object's successor has; nil when nothing says.
    private func newKey(of object: DynamicObject, _ newType: Int) -> Value? {
        let schema = new.schema(newType)
        guard let row = object._row else { return nil }
        guard let slot = schema.primaryKeySlot else { return row.schema.hasHiddenKey ? row.key : nil }
        let name = keys.renamed[schema.name] ?? schema.properties[slot].column
        return row.schema.slot(of: name).flatMap { row.current($0) }
    }

    /// Makes an object.
    @discardableResult
    public func create(_ typeName: String, value: Any = [String: Any]()) -> MigrationObject {
        Realm(core: new).dynamicCreate(typeName, value: value)
    }

    /// Deletes an object; of those that `enumerateObjects` gives, a new one.
    public func delete(_ object: MigrationObject) { new.delete(object) }

    /// Deletes all objects of a class; one that the Realm does not have any more is removed from the file.
    /// - Returns: whether the file had the class.
    @discardableResult
    public func deleteData(forType typeName: String) -> Bool {
        if let type = new.type(named: typeName) {
            new.delete(type, new.run(new.all(type)))
            return old.type(named: typeName) != nil
        }
        var isThere = false
        new.change { transaction throws(SluiceError) in isThere = try transaction.dropClass(typeName) }
        return isThere
    }

    /// Gives a property the values that another had, which the class does not have any more; a primary key as well. Faster than to
    /// set each object's, and right for links.
    public func renameProperty(onType typeName: String, from oldName: String, to newName: String) {
        guard let oldType = old.type(named: typeName), let newType = new.type(named: typeName) else {
            throwRealmException("Cannot rename properties for type '\(typeName)' because it does not exist.")
        }
        let (before, after) = (old.schema(oldType), new.schema(newType))
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

    private func copy(_ oldType: Int, _ newType: Int, from source: Int, to target: Int) {
        for key in old.run(old.all(oldType)) {
            guard let object = old.object(DynamicObject.self, type: oldType, key: key), let newKey = newKey(of: object, newType),
                let value = object._row?.current(source)
            else { continue }
            new.change { transaction throws(SluiceError) in
                try transaction.set(type: newType, key: newKey, property: target, value)
            }
        }
    }

    /// The table is empty, as nothing said which object is which.
    private func renameKey(_ oldType: Int, _ newType: Int, _ oldName: String) {
        let (before, after) = (old.schema(oldType), new.schema(newType))
        keys.renamed[after.name] = oldName
        let kept = before.properties.indices.filter { slot in
            guard let match = after.properties.first(where: { $0.column == before.properties[slot].column }) else { return false }
            return match.kind.type == before.properties[slot].kind.type && match.kind.collection == before.properties[slot].kind.collection
        }
        for key in old.run(old.all(oldType)) {
            guard let row = old.row(oldType, key), let slot = before.slot(of: oldName), let newKey = row[slot] else { continue }
            let values = Dictionary(uniqueKeysWithValues: kept.map { (before.properties[$0].column, row[$0] ?? .null) })
            new.change { transaction throws(SluiceError) in
                try transaction.create(type: newType, key: newKey, values: values)
            }
        }
    }
}
