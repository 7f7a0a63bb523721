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
    public init(primaryKey: Bool) where Value: _PrimaryKey {
        storage = .unset
        flags = primaryKey ? .primaryKey : []
    }

    /// The class's primary key, with an initial value.
    public init(wrappedValue value: Value, primaryKey: Bool) where Value: _PrimaryKey {
        storage = .value(value)
        flags = primaryKey ? .primaryKey : []
    }

    /// A property with an index.
    public init(indexed: Bool) where Value: _Indexable {
        storage = .unset
        flags = indexed ? .indexed : []
    }

    /// A property with an index and an initial value.
    public init(wrappedValue value: Value, indexed: Bool) where Value: _Indexable {
        storage = .value(value)
        flags = indexed ? .indexed : []
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
    /// Takes the value out of the wrapper at an address, for an object that becomes managed by the owner of `owner`'s row.
    /// - Returns: the value, and whether it was given by the app (false: the type's default).
    static func take(at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> (_StoredValue, isGiven: Bool)
    /// Puts a value into the wrapper at an address, for `init(value:)`. - Returns: false when the value does not fit.
    static func put(_ value: Any, at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> Bool
    /// Makes the wrapper at an address one of a managed object.
    static func bind(at address: UnsafeMutableRawPointer, slot: Int32)
}

extension Persisted: AnyPersisted {
    static var kind: _PropertyKind { Value._kind }

    static func take(at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> (_StoredValue, isGiven: Bool) {
        let wrapper = address.assumingMemoryBound(to: Persisted<Value>.self)
        if case .value(let value) = wrapper.pointee.storage { return (value._stored(in: owner), true) }
        return (Value._default()._stored(in: owner), false)
    }

    static func put(_ value: Any, at address: UnsafeMutableRawPointer, of owner: ObjectBase) -> Bool {
        guard let value = Value._coerce(value) else { return false }
        address.assumingMemoryBound(to: Persisted<Value>.self).pointee.storage = .value(value)
        return true
    }

    static func bind(at address: UnsafeMutableRawPointer, slot: Int32) {
        let wrapper = address.assumingMemoryBound(to: Persisted<Value>.self)
        wrapper.pointee.slot = slot
        wrapper.pointee.storage = .unset
    }
}
