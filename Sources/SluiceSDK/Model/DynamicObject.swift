import Foundation
import SluiceCore

/// An object without its class: properties are read and set by name.
///
/// ```swift
/// let dog = realm.dynamicObjects("Dog").first
/// dog?["name"] as? String
/// ```
@dynamicMemberLookup
public final class DynamicObject: Object {
    /// The value of a property by name.
    public subscript(dynamicMember member: String) -> Any? {
        get { self[member] }
        set { self[member] = newValue }
    }

    override public class func shouldIncludeInDefaultSchema() -> Bool { false }

    /// Returns another accessor of an object's row; nil for an unmanaged or deleted object.
    static func accessor(of object: Object) -> DynamicObject? {
        guard let row = object._row else { return nil }
        return row.core.object(DynamicObject.self, type: row.type, key: row.key)
    }
}

extension ObjectBase {
    /// The class in the object's Realm.
    public var objectSchema: ObjectSchema { ObjectSchema(model) }

    /// Returns the value of a property by name; nil for null. An unknown name ends the program.
    public func value(forKey key: String) -> Any? {
        guard let slot = slot(key) else { throwRealmException("Invalid property name '\(key)' for class '\(model.name)'.") }
        let value = model.untyped(of: self, slot: slot)
        if self is DynamicObject, let object = value as? Object { return DynamicObject.accessor(of: object) ?? value }
        return value
    }

    /// Returns the value at a path of property names. A path through a collection returns an array of its elements' values.
    public func value(forKeyPath keyPath: String) -> Any? {
        let (key, rest) = DynamicAccess.split(keyPath)
        return DynamicAccess.value(of: value(forKey: key), at: rest)
    }

    /// Sets a property by name; nil sets null. An unknown name or an unsuitable value ends the program.
    public func setValue(_ value: Any?, forKey key: String) {
        guard let slot = slot(key), slot < model.storedCount else {
            throwRealmException("Invalid property name '\(key)' for class '\(model.name)'.")
        }
        model.put(value ?? NSNull(), slot, self)
    }

    /// Sets several properties by name, in no particular order; `NSNull` sets null.
    public func setValuesForKeys(_ keyedValues: [String: Any]) {
        for (key, value) in keyedValues { setValue(value, forKey: key) }
    }

    /// Returns the values of several properties by name, with `NSNull` for null.
    public func dictionaryWithValues(forKeys keys: [String]) -> [String: Any] {
        Dictionary(keys.map { ($0, value(forKey: $0) ?? NSNull()) }, uniquingKeysWith: { $1 })
    }

    /// Returns a property's slot. Dynamic access uses the class's names only, not the file's.
    private func slot(_ name: String) -> Int? { model.slot(of: name) }

    private func place(_ name: String, _ collection: CollectionKind) -> _Place {
        guard let slot = slot(name), model.properties[slot].kind.collection == collection, !model.properties[slot].kind.isComputed else {
            throwRealmException("Property '\(model.name).\(name)' is no \(collection) of objects.")
        }
        if managingCore == nil { throwRealmException("Dynamic collections need an object that a Realm manages.") }
        return _Place(owner: self, slot: slot)
    }

    /// Returns a list of objects without their class. The object must be managed; another property ends the program.
    public func dynamicList(_ propertyName: String) -> List<DynamicObject> { List(place: place(propertyName, .list)) }

    /// Returns a set of objects without their class. The object must be managed; another property ends the program.
    public func dynamicMutableSet(_ propertyName: String) -> MutableSet<DynamicObject> { MutableSet(place: place(propertyName, .set)) }

    /// Returns a map to objects without their class. The object must be managed; another property ends the program.
    public func dynamicMap<Key: _MapKey>(_ propertyName: String) -> Map<Key, DynamicObject?> {
        Map(place: place(propertyName, .dictionary))
    }
}

extension Realm {
    /// Returns all objects of a class by its name. An unknown class ends the program.
    public func dynamicObjects(_ typeName: String) -> Results<DynamicObject> {
        Results(storage: ResultsStorage(core: core, type: dynamicType(typeName)))
    }

    /// Returns an object by the name of its class and its primary key; nil if it is not on the device.
    /// An unknown class, a class without a primary key, or an invalid key ends the program.
    public func dynamicObject(ofType typeName: String, forPrimaryKey key: Any) -> DynamicObject? {
        let type = dynamicType(typeName)
        core.classes.schema(type).requirePrimaryKey()
        guard let value = Value(any: key) else { throwRealmException("Invalid primary key '\(key)' for '\(typeName)'.") }
        return core.object(DynamicObject.self, type: type, key: value)
    }

    /// Creates an object by the name of its class, as `create` does.
    @discardableResult
    public func dynamicCreate(_ typeName: String, value: Any = [String: Any](), update: UpdatePolicy = .error) -> DynamicObject {
        guard let type = core.classes.schema(dynamicType(typeName)).objectClass as? Object.Type else {
            throwRealmException("Object type '\(typeName)' is not managed by the Realm.")
        }
        let object = create(type, value: value, update: update)
        return DynamicObject.accessor(of: object) ?? DynamicObject()
    }

    private func dynamicType(_ name: String) -> Int {
        guard let type = core.classes.type(named: name) else { throwRealmException("Object type '\(name)' is not managed by the Realm.") }
        return type
    }
}

/// Access to untyped values by key path.
enum DynamicAccess {
    static func split(_ keyPath: String) -> (key: String, rest: String?) {
        guard let dot = keyPath.firstIndex(of: ".") else { return (keyPath, nil) }
        return (String(keyPath[..<dot]), String(keyPath[keyPath.index(after: dot)...]))
    }

    static func value(of value: Any?, at keyPath: String?) -> Any? {
        guard let keyPath, let value else { return value }
        if let object = value as? ObjectBase { return object.value(forKeyPath: keyPath) }
        if let elements = value as? any RandomAccessCollection { return values(of: elements, at: keyPath) }
        throwRealmException("The key path '\(keyPath)' goes on after a value that has no properties.")
    }

    private static func values(of elements: some Collection, at keyPath: String) -> [Any?] {
        elements.map { value(of: $0 as Any, at: keyPath) }
    }
}
