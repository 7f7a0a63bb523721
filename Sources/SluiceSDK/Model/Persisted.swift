/// Makes a property of an `Object` one that is stored, synced and observed.
///
/// ```swift
/// class Task: Object {
///     @Persisted(primaryKey: true) var _id: ObjectId
///     @Persisted var taskName: String
///     @Persisted(indexed: true) var assignee: String?
///     @Persisted var tags: List<String>
/// }
/// ```
/// Without an initial value a property begins with the default of its type: 0, false, the empty string or collection, nil,
/// a new ObjectId or UUID, the current date.
///
/// On an object that no Realm manages the wrapper holds the value itself. On a managed one it knows only its slot, and the
/// value is in the row cache of the object.
@propertyWrapper
public struct Persisted<Value: _Persistable> {
    // The only member, so that its address is the property's: objects are read and bound by it (ModelSchema).
    @usableFromInline var wrapped: _Wrapped

    /// A property that begins with the default of its type.
    @inlinable public init() { wrapped = _Wrapped(.unset, []) }

    /// A property that begins with this value.
    @inlinable public init(wrappedValue value: Value) { wrapped = _Wrapped(Value._hold(value), []) }

    /// The class's primary key, or not when false.
    @inlinable public init(primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        wrapped = _Wrapped(.unset, primaryKey ? .primaryKey : [])
    }

    /// The class's primary key, with an initial value.
    @inlinable public init(wrappedValue value: Value, primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        wrapped = _Wrapped(Value._hold(value), primaryKey ? .primaryKey : [])
    }

    /// A property with an index.
    @inlinable public init(indexed: Bool) where Value.PersistedType: _Indexable {
        wrapped = _Wrapped(.unset, indexed ? .indexed : [])
    }

    /// A property with an index and an initial value.
    @inlinable public init(wrappedValue value: Value, indexed: Bool) where Value.PersistedType: _Indexable {
        wrapped = _Wrapped(Value._hold(value), indexed ? .indexed : [])
    }

    /// The objects that link to this one by a property of theirs; see `LinkingObjects`.
    public init<Element>(originProperty: String) where Value == LinkingObjects<Element> {
        wrapped = _Wrapped(Value._hold(LinkingObjects(originProperty: originProperty)), [])
    }

    /// Not used: the wrapper works on classes that inherit from `Object` only.
    @available(*, unavailable, message: "@Persisted can only be used as a property on a Realm object")
    public var wrappedValue: Value {
        get { throwRealmException("@Persisted can only be used as a property on a Realm object.") }
        set { throwRealmException("@Persisted can only be used as a property on a Realm object.") }
    }

    /// The value of the property on an object.
    // The key paths must not reach code that is not inlined: only then they fold into plain field accesses.
    @inlinable
    public static subscript<EnclosingSelf: ObjectBase>(
        _enclosingInstance observed: EnclosingSelf,
        wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
        storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Self>
    ) -> Value {
        @inline(__always) get {
            if let head = observed._head {
                let slot = observed[keyPath: storageKeyPath].wrapped.slot
                // A property that the class ignores has no slot: its wrapper goes on holding the value.
                if slot >= 0 {
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
            let value = Value._default()
            observed[keyPath: storageKeyPath].wrapped.held = Value._hold(value)
            return value
        }
        @inline(__always) set {
            if let row = observed._row {
                let slot = observed[keyPath: storageKeyPath].wrapped.slot
                if slot >= 0 {
                    row.write(Int(slot), newValue._stored(in: observed))
                    newValue._attach(to: observed, slot: slot)
                    return
                }
            }
            observed[keyPath: storageKeyPath].wrapped.held = Value._hold(newValue)
        }
    }
}

/// A wrapper of any type, as schema discovery and dynamic access see it: what its `_Wrapped` alone cannot tell.
protocol AnyPersisted {
    static var kind: _PropertyKind { get }
    var flags: _PropertyFlags { get }
    /// The property of a collection of inverse links that it computes.
    var origin: String? { get }
    /// Whether values are accessors of their place, so that they must be told when the object becomes managed.
    static var hasPlace: Bool { get }
    /// The stored form of what a wrapper holds, or of the type's default for `unset`. `owner` decides where linked objects go.
    static func stored(_ held: _HeldValue, in owner: ObjectBase) -> _StoredValue
    /// The default, as a wrapper holds it.
    static func fallback() -> _HeldValue
    /// What a wrapper held becomes the accessor of the property.
    static func attach(_ held: _HeldValue, to owner: ObjectBase, slot: Int)
    /// What a wrapper of an object that no Realm manages holds for a value; nil when the value does not fit.
    static func hold(_ value: Any) -> _HeldValue?
    /// The value of what such a wrapper holds.
    static func untyped(_ held: _HeldValue) -> Any?
    /// The value of a property of a managed object.
    static func read(of owner: ObjectBase, slot: Int) -> Any?
    /// A stored form as dynamic access shows the value.
    static func untyped(_ stored: _StoredValue, of owner: ObjectBase, slot: Int) -> Any?
    /// Sets a property of a managed object. - Returns: false when the value does not fit.
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
            let holder = ObjectBase()
            holder._row = row.takeUnretainedValue()
            try Self.managed(of: holder, slot: Int(wrapped.slot))?.encode(to: encoder)
        }
    }
}

extension KeyedDecodingContainer {
    /// A property that can be null may be left out.
    public func decode<T: _Persistable & Decodable & ExpressibleByNilLiteral>(
        _ type: Persisted<T>.Type, forKey key: Key
    ) throws -> Persisted<T> {
        try decodeIfPresent(type, forKey: key) ?? Persisted<T>(wrappedValue: nil)
    }
}
