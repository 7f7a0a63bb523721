import SluiceCore
import SluiceReplica

/// A type for the keys of a `Map`: a text, or an enumeration of texts.
public protocol _MapKey: Hashable {
    init?(_mapKey: String)
    var _mapKey: String { get }
}

extension String: _MapKey {
    public init?(_mapKey: String) { self = _mapKey }
    public var _mapKey: String { self }
}

extension _MapKey where Self: RawRepresentable, RawValue == String {
    public init?(_mapKey: String) { self.init(rawValue: _mapKey) }
    public var _mapKey: String { rawValue }
}

/// An entry of a `Map`.
public struct SingleMapEntry<Key: _MapKey, Value: RealmCollectionValue>: Hashable {
    public var key: Key
    public var value: Value
}

/// A map from texts to values or objects: a property of a class, or unmanaged until it becomes a property's value.
///
/// A managed map is live: it reads its object's current values, and changes require a write transaction.
public final class Map<Key: _MapKey, Value: RealmCollectionValue>: RealmKeyedCollection, Hashable {
    private typealias Stored = SluiceCore.Value

    private var unmanaged: [String: Value] = [:]
    /// The place of a managed map; nil for an unmanaged one.
    private(set) var place: _Place?

    /// Creates an empty unmanaged map.
    public init() {}

    init(place: _Place) { self.place = place }

    /// The Realm that manages the map; nil for an unmanaged map.
    public var realm: Realm? { place?.core.map { Realm(core: $0) } }

    /// `true` if the object that contains the map has been deleted.
    public var isInvalidated: Bool { place.map { $0.value == nil } ?? false }

    // MARK: Reading

    private var stored: [String: Stored] {
        if case .dictionary(let values)? = place?.value { values } else { [:] }
    }

    private func element(_ value: Stored, _ place: _Place, _ key: String) -> Value {
        let elementPlace = Value._hasPlace ? _Place(parent: place, step: .key(key)) : place
        return Value._makeElement(from: _StoredValue(value), at: elementPlace)
    }

    /// The current entries, sorted by key.
    private var entries: [(key: String, value: Value)] {
        guard let place else { return unmanaged.sorted { $0.key < $1.key }.map { (key: $0.key, value: $0.value) } }
        return stored.sorted { $0.key < $1.key }.map { (key: $0.key, value: element($0.value, place, $0.key)) }
    }

    /// The number of entries.
    public var count: Int { place == nil ? unmanaged.count : stored.count }
    /// `true` if there are no entries.
    public var isEmpty: Bool { count == 0 }
    /// The keys, sorted. A stored text that is no value of `Key` is left out.
    public var keys: [Key] { (place == nil ? Array(unmanaged.keys) : Array(stored.keys)).sorted().compactMap { Key(_mapKey: $0) } }
    /// The values, sorted by key.
    public var values: [Value] { entries.map(\.value) }

    private func value(_ key: String) -> Value? {
        guard let place else { return unmanaged[key] }
        return stored[key].map { element($0, place, key) }
    }

    /// The value for a key; nil if the key is missing. Setting nil removes the entry.
    /// A key that starts with `$` or contains `.` ends the program, in an unmanaged map when the map is added to a Realm.
    public subscript(key: Key) -> Value? {
        get { value(key._mapKey) }
        set { set(newValue, key._mapKey) }
    }

    /// Returns the value for a key; nil if the key is missing.
    public func object(forKey key: Key) -> Value? { self[key] }

    /// Returns the value for a key, as dynamic access shows it.
    public func value(forKey key: String) -> Any? { value(key)?._untyped }

    /// Returns the value at a path: the first component is a key, the others are property names.
    public func value(forKeyPath keyPath: String) -> Any? {
        let (key, rest) = DynamicAccess.split(keyPath)
        return DynamicAccess.value(of: value(key)?._untyped, at: rest)
    }

    /// `true` if an entry satisfies a condition.
    public func contains(where predicate: @escaping (_ key: Key, _ value: Value) -> Bool) -> Bool {
        asKeyValueSequence().contains { predicate($0.key, $0.value) }
    }

    /// Iterates over the entries as they are at the start, sorted by key.
    public func makeIterator() -> RLMMapIterator<SingleMapEntry<Key, Value>> {
        RLMMapIterator(entries.compactMap { entry in Key(_mapKey: entry.key).map { SingleMapEntry(key: $0, value: entry.value) } })
    }

    /// Returns the entries as pairs, sorted by key.
    public func asKeyValueSequence() -> [(key: Key, value: Value)] { map { (key: $0.key, value: $0.value) } }

    // MARK: Changing

    private func set(_ value: Value?, _ key: String) {
        guard let place else {
            unmanaged[key] = value
            return
        }
        Map.check(key)
        let new = value.map { $0._stored(in: place.owner).value }
        if let edited = place.editedCollection() {
            place.edit { () throws(SluiceError) in try edited.set(new, forKey: key) }
        } else {
            var values = stored
            values[key] = new
            place.write(.dictionary(values), [new.map { .setKey(key, $0) } ?? .removeKey(key)])
        }
        guard Value._hasPlace else { return }
        // The accessors of the old value become invalid before the new value takes the place.
        let element = _Place(parent: place, step: .key(key))
        if let address = element.address { place.core?.reading.accessors.replaced(address) }
        value?._attach(at: element)
    }

    /// Ends the program for a key that no Realm stores.
    private static func check(_ key: String) {
        if key.hasPrefix("$") || key.contains(".") {
            throwRealmException("Invalid key '\(key)': the key of a Map cannot begin with '$' or contain '.'.")
        }
    }

    /// Sets the value for a key.
    public func updateValue(_ value: Value, forKey key: Key) { set(value, key._mapKey) }

    /// Sets the value for a key from an untyped value; nil removes the entry. A value that does not fit ends the program.
    public func setValue(_ value: Any?, forKey key: String) {
        guard let value, !isNil(value) else { return set(nil, key) }
        guard let new = Value._coerce(value) else { throwRealmException("Invalid value '\(value)' for key '\(key)' of a Map.") }
        set(new, key)
    }

    /// Merges pairs into the map; `combine` resolves equal keys from the existing and the new value.
    public func merge<S>(_ sequence: S, uniquingKeysWith combine: (Value, Value) throws -> Value) rethrows
    where S: Sequence, S.Element == (key: Key, value: Value) {
        for (key, value) in sequence {
            if let existing = self[key] { self[key] = try combine(existing, value) } else { self[key] = value }
        }
    }

    /// Merges another map into this one; `combine` resolves equal keys from the existing and the new value.
    public func merge(_ other: Map<Key, Value>, uniquingKeysWith combine: (Value, Value) throws -> Value) rethrows {
        try merge(other.asKeyValueSequence(), uniquingKeysWith: combine)
    }

    /// Removes the entry for a key.
    public func removeObject(for key: Key) { set(nil, key._mapKey) }

    /// Removes all entries. The objects themselves stay, unless they are embedded.
    public func removeAll() {
        guard let place else {
            unmanaged = [:]
            return
        }
        place.write(.dictionary([:]), [.clear(.dictionary)])
        guard Value._hasPlace, let address = place.address else { return }
        place.core?.reading.accessors.moved(in: address) { _ in nil }
    }

    public var _managedResults: Results<Value>? { place.flatMap { Results(elementsOf: $0) } }

    public static func == (lhs: Map, rhs: Map) -> Bool { lhs === rhs || lhs.dictionary == rhs.dictionary }
    public func hash(into hasher: inout Hasher) { hasher.combine(dictionary) }
    private var dictionary: [String: Value] { Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }) }

    public var description: String { text(depth: 0) }
}

@available(*, unavailable)
extension Map: Sendable {}

extension Map: _Persistable {
    public typealias PersistedType = Map

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        unsafeDowncast(Map(place: _Place(owner: owner, slot: Int(slot))), to: Self.self)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        if let place, place.core === owner.managingCore { return .boxed(_BoxedValue(.dictionary(stored))) }
        // An unmanaged map takes any key, so its keys are checked when a Realm takes the map.
        if place == nil, owner.managingCore != nil { for key in unmanaged.keys { Map.check(key) } }
        return .boxed(_BoxedValue(.dictionary(dictionary.mapValues { $0._stored(in: owner).value })))
    }

    public func _attach(to owner: ObjectBase, slot: Int32) {
        let place = _Place(owner: owner, slot: Int(slot))
        place.takeOver(from: self.place)
        _attach(at: place)
    }

    public func _attach(at place: _Place) {
        guard self.place == nil else { return }
        let entries = unmanaged
        unmanaged = [:]
        self.place = place
        guard Value._hasPlace else { return }
        for (key, value) in entries { value._attach(at: _Place(parent: place, step: .key(key))) }
    }

    public static func _default() -> Self { Self.init() }

    /// Converts a dictionary. Another map is copied.
    public static func _coerce(_ value: Any) -> Self? {
        let map = Self.init()
        if let other = value as? Self {
            map.unmanaged = other.dictionary
        } else if let dictionary = value as? [String: Any] {
            for (key, value) in dictionary {
                guard let value = Value._coerce(value) else { return nil }
                map.unmanaged[key] = value
            }
        } else if !isNil(value) {
            return nil
        }
        return map
    }

    public static var _kind: _PropertyKind { Value._kind.inCollection(.dictionary) }
}

/// Iterates over the entries that a map had when the iterator was created.
public struct RLMMapIterator<Entry>: IteratorProtocol {
    private var entries: IndexingIterator<[Entry]>

    init(_ entries: [Entry]) { self.entries = entries.makeIterator() }

    public mutating func next() -> Entry? { entries.next() }
}
