import Foundation
import SluiceCore

/// The properties of a class that only a file has, for `DynamicObject`s.
enum FileClass {
    /// Returns the wrapper type that reads a property of such a class. Embedded objects become dictionaries.
    static func reader(of property: SluiceCore.Property) -> any AnyPersisted.Type {
        switch property.type {
        case .bool: readers(Bool.self, property)
        case .int: readers(Int.self, property)
        case .float: readers(Float.self, property)
        case .double: readers(Double.self, property)
        case .decimal: readers(Decimal128.self, property)
        case .string: readers(String.self, property)
        case .binary: readers(Data.self, property)
        case .timestamp: readers(Date.self, property)
        case .objectId: readers(ObjectId.self, property)
        case .uuid: readers(UUID.self, property)
        case .mixed:
            switch property.collection {
            case .none: Persisted<AnyRealmValue>.self
            case .list: Persisted<List<AnyRealmValue>>.self
            case .set: Persisted<MutableSet<AnyRealmValue>>.self
            case .dictionary: Persisted<Map<String, AnyRealmValue>>.self
            }
        case .link:
            switch property.collection {
            case .none: Persisted<DynamicObject?>.self
            case .list: Persisted<List<DynamicObject>>.self
            case .set: Persisted<MutableSet<DynamicObject>>.self
            case .dictionary: Persisted<Map<String, DynamicObject?>>.self
            }
        case .embedded: Persisted<PlainValue>.self
        }
    }

    private static func readers<T: RealmCollectionValue & _OptionalPersistable>(
        _: T.Type, _ property: SluiceCore.Property
    ) -> any AnyPersisted.Type {
        switch (property.collection, property.isOptional) {
        case (.none, false): Persisted<T>.self
        case (.none, true): Persisted<T?>.self
        case (.list, false): Persisted<List<T>>.self
        case (.list, true): Persisted<List<T?>>.self
        case (.set, false): Persisted<MutableSet<T>>.self
        case (.set, true): Persisted<MutableSet<T?>>.self
        case (.dictionary, false): Persisted<Map<String, T>>.self
        case (.dictionary, true): Persisted<Map<String, T?>>.self
        }
    }

    static func kind(of property: SluiceCore.Property) -> _PropertyKind {
        var target: ObjectBase.Type?
        if case .link = property.type { target = DynamicObject.self }
        return _PropertyKind(
            type: property.type, collection: property.collection, isOptional: property.isOptional, target: target)
    }
}

/// One or more embedded objects of a class that is not in the program, as dictionaries by property name.
struct PlainValue: _Persistable {
    typealias PersistedType = PlainValue
    let value: Value

    static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> PlainValue { PlainValue(value: stored.value) }
    func _stored(in owner: ObjectBase) -> _StoredValue { _StoredValue(value) }
    static func _default() -> PlainValue { PlainValue(value: .null) }
    static var _kind: _PropertyKind { _PropertyKind(type: .mixed) }
    var _untyped: Any? { PlainValue.untyped(value) }

    private static func untyped(_ value: Value) -> Any? {
        switch value {
        case .list(let values): values.map { untyped($0) ?? NSNull() }
        // A null field has no entry.
        case .dictionary(let fields): fields.compactMapValues { untyped($0) }
        default: value.plain
        }
    }
}
