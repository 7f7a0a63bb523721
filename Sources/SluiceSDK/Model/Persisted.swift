/// Makes a property of an `Object` stored, synced and observed.
///
/// ```swift
/// class Task: Object {
///     @Persisted(primaryKey: true) var _id: ObjectId
///     @Persisted var taskName: String
///     @Persisted(indexed: true) var assignee: String?
///     @Persisted var tags: List<String>
/// }
/// ```
/// Without an initial value a property starts with its type's default: 0, false, an empty string or collection, or nil.
/// The defaults of ObjectId, UUID and Date are a new identifier and the current date.
///
/// On an unmanaged object the wrapper holds the value itself.
/// On a managed object it holds its slot only, and the value is in the object's row cache.
@propertyWrapper
public struct Persisted<Value: _Persistable> {
    // The only member, so that its address is the property's: `ModelSchema` reads and binds objects by it.
    @usableFromInline var wrapped: _Wrapped

    /// Creates a property that starts with the default of its type.
    @inlinable public init() { wrapped = _Wrapped(.unset, []) }

    /// Creates a property that starts with this value.
    @inlinable public init(wrappedValue value: Value) { wrapped = _Wrapped(Value._hold(value), []) }

    /// Creates the class's primary key. `false` creates an ordinary property.
    @inlinable public init(primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        wrapped = _Wrapped(.unset, primaryKey ? .primaryKey : [])
    }

    /// Creates the class's primary key with an initial value. `false` creates an ordinary property.
    @inlinable public init(wrappedValue value: Value, primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        wrapped = _Wrapped(Value._hold(value), primaryKey ? .primaryKey : [])
    }

    /// Creates a property with an index. `false` creates an ordinary property.
    @inlinable public init(indexed: Bool) where Value.PersistedType: _Indexable {
        wrapped = _Wrapped(.unset, indexed ? .indexed : [])
    }

    /// Creates a property with an index and an initial value. `false` creates an ordinary property.
    @inlinable public init(wrappedValue value: Value, indexed: Bool) where Value.PersistedType: _Indexable {
        wrapped = _Wrapped(Value._hold(value), indexed ? .indexed : [])
    }

    /// Creates an inverse: the objects that link to this one by a property of theirs; see `LinkingObjects`.
    public init<Element>(originProperty: String) where Value == LinkingObjects<Element> {
        wrapped = _Wrapped(Value._hold(LinkingObjects(originProperty: originProperty)), [])
    }

    /// Unavailable: the wrapper works on classes that inherit from `Object`, `EmbeddedObject` or `AsymmetricObject` only.
    @available(*, unavailable, message: "@Persisted can only be used as a property on a Realm object")
    public var wrappedValue: Value {
        get { throwRealmException("@Persisted can only be used as a property on a Realm object.") }
        set { throwRealmException("@Persisted can only be used as a property on a Realm object.") }
    }

    /// The value of the property on an object. A managed object must be used where its Realm belongs, and set in a write transaction.
    // The key paths must not reach code that is not inlined: only then do they fold into plain field accesses.
    @inlinable
    public static subscript<EnclosingSelf: ObjectBase>(
        _enclosingInstance observed: EnclosingSelf,
        wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
        storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Self>
    ) -> Value {
        @inline(__always) get {
            if let head = observed._head {
                let slot = observed[keyPath: storageKeyPath].wrapped.slot
                // An ignored property has no slot: its wrapper keeps holding the value.
                if slot >= 0 {
                    // Equal generations mean that the row is current, so the fast path is a comparison and a load.
                    if head.pointee.generation != head.pointee.clock.pointee { observed._load(slot) }
                    return Value._read(_RowHead.values(head) + Int(slot), of: observed, slot: slot)
                }
            }
            if let trace = observed._trace {
                trace.slots.append(observed[keyPath: storageKeyPath].wrapped.slot)
                return Value._traced(trace)
            }
            let held = observed[keyPath: storageKeyPath].wrapped.held
            guard case .unset = held else { return Value._value(of: held) }
            // Stored on first read: a default such as a new ObjectId must stay the same.
            let value = Value._default()
            observed[keyPath: storageKeyPath].wrapped.held = Value._hold(value)
            return value
        }
        @inline(__always) set {
            if let row = observed._row {
                let slot = observed[keyPath: storageKeyPath].wrapped.slot
                if slot >= 0 {
                    // Stored first: once attached, a collection reads its elements from the place.
                    row.write(Int(slot), newValue._stored(in: observed))
                    newValue._attach(to: observed, slot: slot)
                    return
                }
            }
            observed[keyPath: storageKeyPath].wrapped.held = Value._hold(newValue)
        }
    }
}

/// A wrapper of any type, for schema discovery and dynamic access. It adds the type's operations to `_Wrapped`.
protocol AnyPersisted {
    static var kind: _PropertyKind { get }
    var flags: _PropertyFlags { get }
    /// The other class's property, for a collection of inverse links; nil for other properties.
    var origin: String? { get }
    /// `true` if values are accessors of their place, so that they must be attached when the object becomes managed.
    static var hasPlace: Bool { get }
    /// Returns the stored form of a wrapper's content, or of the type's default for `unset`. `owner` decides where linked objects go.
    static func stored(_ held: _HeldValue, in owner: ObjectBase) -> _StoredValue
    /// Returns the type's default, as a wrapper holds it.
    static func fallback() -> _HeldValue
    /// Makes a wrapper's content the accessor of the property.
    static func attach(_ held: _HeldValue, to owner: ObjectBase, slot: Int)
    /// Returns the content that a wrapper of an unmanaged object holds for a value; nil if the value does not fit.
    static func hold(_ value: Any) -> _HeldValue?
    /// Returns the value of such content, as dynamic access shows it.
    static func untyped(_ held: _HeldValue) -> Any?
    /// Returns the value of a property of a managed object; nil for null or an unmanaged object.
    static func read(of owner: ObjectBase, slot: Int) -> Any?
    /// Returns the value of a stored form, as dynamic access shows it.
    static func untyped(_ stored: _StoredValue, of owner: ObjectBase, slot: Int) -> Any?
    /// Sets a property of a managed object. Returns `false` if the value does not fit.
    static func write(_ value: Any, to owner: ObjectBase, slot: Int) -> Bool
}

extension Persisted: AnyPersisted {
    static var kind: _PropertyKind { Value._kind }
    static var hasPlace: Bool { Value._hasPlace }
    var flags: _PropertyFlags { wrapped.flags }

    var origin: String? {
        if case .object = wrapped.held { return (Value._value(of: wrapped.held) as? any AnyLinkingObjects)?.originProperty }
        return nil
    }

    static func stored(_ held: _HeldValue, in owner: ObjectBase) -> _StoredValue {
        if case .unset = held { return Value._default()._stored(in: owner) }
        return Value._value(of: held)._stored(in: owner)
    }

    static func fallback() -> _HeldValue { Value._hold(Value._default()) }

    static func attach(_ held: _HeldValue, to owner: ObjectBase, slot: Int) {
        Value._value(of: held)._attach(to: owner, slot: Int32(slot))
    }

    static func hold(_ value: Any) -> _HeldValue? { Value._coerce(value).map { Value._hold($0) } }

    static func untyped(_ held: _HeldValue) -> Any? { Value._value(of: held)._untyped }

    private static func managed(of owner: ObjectBase, slot: Int) -> Value? {
        guard let row = owner._row else { return nil }
        if !row.isFresh { row.load(slot) }
        return Value._make(from: row.values[slot], of: owner, slot: Int32(slot))
    }

    static func untyped(_ stored: _StoredValue, of owner: ObjectBase, slot: Int) -> Any? {
        Value._make(from: stored, of: owner, slot: Int32(slot))._untyped
    }

    static func read(of owner: ObjectBase, slot: Int) -> Any? { managed(of: owner, slot: slot)?._untyped }

    static func write(_ value: Any, to owner: ObjectBase, slot: Int) -> Bool {
        guard let value = Value._coerce(value) else { return false }
        owner._row?.write(slot, value._stored(in: owner))
        value._attach(to: owner, slot: Int32(slot))
        return true
    }
}

extension Persisted: Decodable where Value: Decodable {
    public init(from decoder: any Decoder) throws { self.init(wrappedValue: try Value(from: decoder)) }
}

extension Persisted: Encodable where Value: Encodable {
    public func encode(to encoder: any Encoder) throws {
        switch wrapped.held {
        case .unset: try Value._default().encode(to: encoder)
        case .scalar, .object: try Value._value(of: wrapped.held).encode(to: encoder)
        case .managed(let row):
            // The wrapper alone holds the row: a temporary object serves as the owner of the value.
            let holder = ObjectBase()
            holder._row = row.takeUnretainedValue()
            try Self.managed(of: holder, slot: Int(wrapped.slot))?.encode(to: encoder)
        }
    }
}

extension KeyedDecodingContainer {
    /// Decodes an optional property; a missing key gives nil.
    public func decode<T: _Persistable & Decodable & ExpressibleByNilLiteral>(
        _ type: Persisted<T>.Type, forKey key: Key
    ) throws -> Persisted<T> {
        try decodeIfPresent(type, forKey: key) ?? Persisted<T>(wrappedValue: nil)
    }
}
