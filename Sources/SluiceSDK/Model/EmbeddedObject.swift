import SluiceCore

/// A class whose objects belong to one property of another object. They are stored with it and deleted with it.
/// It has no primary key and no subscription of its own.
///
/// ```swift
/// class Address: EmbeddedObject {
///     @Persisted var street: String
/// }
/// class Person: Object {
///     @Persisted(primaryKey: true) var _id: ObjectId
///     @Persisted var home: Address?
///     @Persisted var others: List<Address>
/// }
/// ```
open class EmbeddedObject: ObjectBase {
    /// Creates an unmanaged object from a dictionary by property name, an array in the order of the properties, or another object.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }

    /// The Realm that manages the object; nil for an unmanaged object.
    public var realm: Realm? { managingCore.map { Realm(core: $0) } }

    /// `true` if the object or its containing object has been deleted, or another object has replaced it.
    public var isInvalidated: Bool { isGone }

    /// `true` if both objects are accessors of the same place.
    public func isSameObject(as other: EmbeddedObject?) -> Bool { other.map { $0 == self } ?? false }
}

/// Stored as a dictionary of its properties.
extension EmbeddedObject: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = EmbeddedObject

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        accessor(at: _Place(owner: owner, slot: Int(slot)))
    }

    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> Self { accessor(at: place) }

    static func accessor(at place: _Place) -> Self {
        let object = Self()
        object.becomeAccessor(of: place, attaching: false)
        return object
    }

    private func becomeAccessor(of place: _Place, attaching: Bool) {
        guard let core = place.core else { return }
        let schema = model
        core.reading.accessors.insert(place)
        schema.bind(self, to: _RowCache(core: core, schema: schema, place: place), attaching: attaching)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        // A managed embedded object already has its one place.
        if _row != nil, owner.managingCore != nil { throwRealmException("Can't set link to existing managed embedded object") }
        let schema = model
        if let row = _row {
            // An unmanaged owner receives a copy.
            return .boxed(_BoxedValue(row.place?.value ?? .null))
        }
        var fields: [String: Value] = [:]
        for slot in 0..<schema.storedCount {
            fields[schema.properties[slot].column] = schema.take(self, slot: slot, owner: owner).value.value
        }
        return .boxed(_BoxedValue(.dictionary(fields)))
    }

    public func _attach(to owner: ObjectBase, slot: Int32) {
        Self._attachOptional(self, to: owner, slot: slot)
    }

    public func _attach(at place: _Place) {
        if _row == nil { becomeAccessor(of: place, attaching: true) }
    }

    public static func _attachOptional(_ value: EmbeddedObject?, to owner: ObjectBase, slot: Int32) {
        let place = _Place(owner: owner, slot: Int(slot))
        // The previous object at the place is replaced: its accessors become invalid.
        if let address = place.address { place.core?.reading.accessors.replaced(address) }
        value?._attach(at: place)
    }

    public static var _hasPlace: Bool { true }

    public static func _default() -> Self { Self() }

    public static func _traced(_ trace: _KeyPathTrace) -> Self { ModelSchema.of(self).traced(trace) as? Self ?? Self() }

    /// Converts values, or takes an unmanaged object. A managed object is copied.
    public static func _coerce(_ value: Any) -> Self? {
        if let object = value as? Self, object._row == nil { return object }
        guard value is [String: Any] || value is [Any] || value is EmbeddedObject else { return nil }
        let object = Self()
        object.model.assign(value, to: object)
        return object
    }

    public static var _kind: _PropertyKind {
        _PropertyKind(type: .embedded(className()), isOptional: true, target: Self.self)
    }
}
