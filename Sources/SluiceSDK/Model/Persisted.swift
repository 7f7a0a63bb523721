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
    @usableFromInline enum Storage {
        case unset
        case value(Value)
        /// The row of a managed object, for those who have the wrapper without its object. The object keeps the row alive.
        case managed(Unmanaged<_RowCache>)
    }

    // First, so that its address is the property's: objects are bound by writing it (ModelSchema).
    @usableFromInline var slot: Int32 = -1
    let flags: PropertyFlags
    @usableFromInline var storage: Storage

    /// A property that begins with the default of its type.
    public init() {
        storage = .unset
        flags = []
    }

    /// A property that begins with this value.
    public init(wrappedValue value: Value) {
        storage = .value(value)
        flags = []
    }

    /// The class's primary key, or not when false.
    public init(primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        storage = .unset
        flags = primaryKey ? .primaryKey : []
    }

    /// The class's primary key, with an initial value.
    public init(wrappedValue value: Value, primaryKey: Bool) where Value.PersistedType: _PrimaryKey {
        storage = .value(value)
        flags = primaryKey ? .primaryKey : []
    }

    /// A property with an index.
    public init(indexed: Bool) where Value.PersistedType: _Indexable {
        storage = .unset
        flags = indexed ? .indexed : []
    }

    /// A property with an index and an initial value.
    public init(wrappedValue value: Value, indexed: Bool) where Value.PersistedType: _Indexable {
        storage = .value(value)
        flags = indexed ? .indexed : []
    }

    /// The objects that link to this one by a property of theirs; see `LinkingObjects`.
    public init<Element>(originProperty: String) where Value == LinkingObjects<Element> {
        storage = .value(LinkingObjects(originProperty: originProperty))
        flags = []
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
            if let row = observed._row {
                let slot = observed[keyPath: storageKeyPath].slot
                if row.generation != row.clock.generation { row.reload() }
                return Value._make(from: row.values[Int(slot)], of: observed, slot: slot)
            }
            if let trace = observed._trace {
                trace.slots.append(observed[keyPath: storageKeyPath].slot)
                return Value._default()
            }
            if case .value(let value) = observed[keyPath: storageKeyPath].storage { return value }
            let value = Value._default()
            observed[keyPath: storageKeyPath].storage = .value(value)
            return value
        }
        @inline(__always) set {
            if let row = observed._row {
                let slot = observed[keyPath: storageKeyPath].slot
                row.write(Int(slot), newValue._stored(in: observed))
                newValue._attach(to: observed, slot: slot)
                return
            }
            observed[keyPath: storageKeyPath].storage = .value(newValue)
        }
    }
}

/// What a wrapper was declared with.
struct PropertyFlags: OptionSet {
    let rawValue: UInt8
    static let primaryKey = PropertyFlags(rawValue: 1)
    static let indexed = PropertyFlags(rawValue: 2)
}

/// A wrapper of any type, as schema discovery and promotion see it.
protocol AnyPersisted {
    static var kind: _PropertyKind { get }
    var flags: PropertyFlags { get }
    /// The property of a collection of inverse links that it computes.
    var origin: String? { get }
    /// Takes the value out of the wrapper at an address, for an object that becomes managed by the owner of `owner`'s row.
    /// - Returns: the value, and whether it was given by the app (false: the type's default).
    static func take(at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> (_StoredValue, isGiven: Bool)
    /// Puts a value into the wrapper at an address, for `init(value:)`. - Returns: false when the value does not fit.
    static func put(_ value: Any, at address: UnsafeMutableRawPointer) -> Bool
    /// The value of the wrapper at an address of an object that no Realm manages; fixes a default on first use.
    static func get(at address: UnsafeMutableRawPointer) -> Any?
    /// The value of a property of a managed object.
    static func read(of owner: ObjectBase, slot: Int) -> Any?
    /// Sets a property of a managed object. - Returns: false when the value does not fit.
    static func write(_ value: Any, to owner: ObjectBase, slot: Int) -> Bool
    /// Makes the wrapper at an address one of a managed object. What it held becomes the accessor of the property when `owner` is given.
    static func bind(at address: UnsafeMutableRawPointer, slot: Int32, row: _RowCache?, attachingTo owner: ObjectBase?)
}

extension Persisted: AnyPersisted {
    static var kind: _PropertyKind { Value._kind }

    var origin: String? {
        if case .value(let value) = storage { return (value as? any AnyLinkingObjects)?.originProperty }
        return nil
    }

    static func take(at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> (_StoredValue, isGiven: Bool) {
        let wrapper = address.assumingMemoryBound(to: Persisted<Value>.self)
        if case .value(let value) = wrapper.pointee.storage { return (value._stored(in: owner), true) }
        return (Value._default()._stored(in: owner), false)
    }

    static func put(_ value: Any, at address: UnsafeMutableRawPointer) -> Bool {
        guard let value = Value._coerce(value) else { return false }
        address.assumingMemoryBound(to: Persisted<Value>.self).pointee.storage = .value(value)
        return true
    }

    static func get(at address: UnsafeMutableRawPointer) -> Any? { held(at: address)._untyped }

    private static func held(at address: UnsafeMutableRawPointer) -> Value {
        let wrapper = address.assumingMemoryBound(to: Persisted<Value>.self)
        if case .value(let value) = wrapper.pointee.storage { return value }
        let value = Value._default()
        wrapper.pointee.storage = .value(value)
        return value
    }

    private static func managed(of owner: ObjectBase, slot: Int) -> Value? {
        guard let row = owner._row else { return nil }
        if row.generation != row.clock.generation { row.reload() }
        return Value._make(from: row.values[slot], of: owner, slot: Int32(slot))
    }

    static func read(of owner: ObjectBase, slot: Int) -> Any? { managed(of: owner, slot: slot)?._untyped }

    static func write(_ value: Any, to owner: ObjectBase, slot: Int) -> Bool {
        guard let value = Value._coerce(value) else { return false }
        owner._row?.write(slot, value._stored(in: owner))
        value._attach(to: owner, slot: Int32(slot))
        return true
    }

    static func bind(at address: UnsafeMutableRawPointer, slot: Int32, row: _RowCache?, attachingTo owner: ObjectBase?) {
        let wrapper = address.assumingMemoryBound(to: Persisted<Value>.self)
        let held = wrapper.pointee.storage
        wrapper.pointee.slot = slot
        wrapper.pointee.storage = row.map { .managed(Unmanaged.passUnretained($0)) } ?? .unset
        if let owner, case .value(let value) = held { value._attach(to: owner, slot: slot) }
    }
}

extension Persisted: Decodable where Value: Decodable {
    public init(from decoder: any Decoder) throws {
        storage = .value(try Value(from: decoder))
        flags = []
    }
}

extension Persisted: Encodable where Value: Encodable {
    public func encode(to encoder: any Encoder) throws {
        switch storage {
        case .unset: try Value._default().encode(to: encoder)
        case .value(let value): try value.encode(to: encoder)
        case .managed(let row):
            let holder = ObjectBase()
            holder._row = row.takeUnretainedValue()
            try Self.managed(of: holder, slot: Int(slot))?.encode(to: encoder)
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
