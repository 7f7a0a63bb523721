public import Foundation
import SluiceCore

/// A map from text keys to values or objects: `Map`. Queries, sorting and aggregates apply to the values of a managed map.
public protocol RealmKeyedCollection: Sequence, CustomStringConvertible, ThreadConfined, _QueryCollection {
    associatedtype Key: _MapKey
    associatedtype Value: RealmCollectionValue

    /// The number of entries.
    var count: Int { get }
    /// The keys in ascending order.
    var keys: [Key] { get }
    /// The values in the order of their keys.
    var values: [Value] { get }
    /// The value of a key; nil if there is none. Setting nil removes the entry.
    subscript(key: Key) -> Value? { get set }
    /// The value of a key; nil if there is none.
    func object(forKey key: Key) -> Value?
    /// Sets the value of a key.
    func updateValue(_ value: Value, forKey key: Key)
    /// Removes the entry of a key. Does nothing if there is none.
    func removeObject(for key: Key)
    /// Removes all entries.
    func removeAll()
    /// The value of a key for key-value coding.
    func value(forKey key: String) -> Any?
    /// The value at the end of a key path. Its first component is a key, the others are property names.
    func value(forKeyPath keyPath: String) -> Any?
    /// Sets the value of a key; nil removes the entry.
    func setValue(_ value: Any?, forKey key: String)
    /// `true` if any entry meets a condition.
    func contains(where predicate: @escaping (_ key: Key, _ value: Value) -> Bool) -> Bool
    /// The values as results; nil if the map is unmanaged.
    var _managedResults: Results<Value>? { get }
}

extension RealmKeyedCollection {
    /// The values as results. Traps if the map is unmanaged.
    var valueResults: Results<Value> {
        guard let results = _managedResults else {
            throwRealmException("This method may only be called on \(Self.self) instances retrieved from a Realm.")
        }
        return results
    }

    /// The values that match a predicate; see `RealmCollection.filter`.
    public func filter(_ predicateFormat: String, _ args: Any...) -> Results<Value> {
        let storage = valueResults.storage
        return Results(storage: storage.narrowed(storage.condition(predicateFormat, args)))
    }
    /// The values that match a predicate.
    public func filter(_ predicate: NSPredicate) -> Results<Value> { valueResults.filter(predicate) }
    /// The values that match a type-safe query.
    public func `where`(_ isIncluded: (Query<Value>) -> Query<Bool>) -> Results<Value> { valueResults.where(isIncluded) }

    /// The values sorted by a property.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results<Value> {
        valueResults.sorted(byKeyPath: keyPath, ascending: ascending)
    }
    /// The values sorted by several properties, the most significant first.
    public func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Value> where S.Element == SortDescriptor {
        valueResults.sorted(by: sortDescriptors)
    }
    /// The values sorted.
    public func sorted(ascending: Bool = true) -> Results<Value> { valueResults.sorted(ascending: ascending) }
    /// The first value of each group with equal values of the given properties.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Value> where S.Element == String { valueResults.distinct(by: keyPaths) }
    /// The distinct values.
    public func distinct() -> Results<Value> { valueResults.distinct() }

    /// The minimum of a property's values; nil if there are none.
    public func min<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        valueResults.min(ofProperty: property)
    }
    /// The maximum of a property's values; nil if there are none.
    public func max<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        valueResults.max(ofProperty: property)
    }
    /// The sum of a property's values; 0 if there are none.
    public func sum<T: _Persistable>(ofProperty property: String) -> T where T.PersistedType: AddableType {
        valueResults.sum(ofProperty: property)
    }
    /// The average of a property's values; nil if there are none.
    public func average<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: AddableType {
        valueResults.average(ofProperty: property)
    }
}

extension RealmKeyedCollection where Value.PersistedType: MinMaxType {
    /// The smallest value; nil if there is none.
    public func min() -> Value? { valueResults.min() as Value? }
    /// The largest value; nil if there is none.
    public func max() -> Value? { valueResults.max() as Value? }
}

extension RealmKeyedCollection where Value.PersistedType: AddableType {
    /// The sum of the values; 0 if there are none.
    public func sum() -> Value { valueResults.sum() }
    /// The average of the values; nil if there are none.
    public func average<T: _Persistable>() -> T? where T.PersistedType: AddableType { valueResults.average() }
}

extension RealmKeyedCollection where Value: OptionalProtocol, Value.Wrapped: ObjectBase {
    /// The minimum of a property of the objects; nil if there are none.
    public func min<T: _Persistable>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: MinMaxType {
        min(ofProperty: _name(for: keyPath))
    }
    /// The maximum of a property of the objects; nil if there are none.
    public func max<T: _Persistable>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: MinMaxType {
        max(ofProperty: _name(for: keyPath))
    }
    /// The sum of a property of the objects; 0 if there are none.
    public func sum<T: _Persistable>(of keyPath: KeyPath<Value.Wrapped, T>) -> T where T.PersistedType: AddableType {
        sum(ofProperty: _name(for: keyPath))
    }
    /// The average of a property of the objects; nil if there are none.
    public func average<T: _Persistable>(of keyPath: KeyPath<Value.Wrapped, T>) -> T? where T.PersistedType: AddableType {
        average(ofProperty: _name(for: keyPath))
    }
    /// The objects sorted by a property.
    public func sorted<T: _Persistable>(by keyPath: KeyPath<Value.Wrapped, T>, ascending: Bool = true) -> Results<Value> {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }
}
