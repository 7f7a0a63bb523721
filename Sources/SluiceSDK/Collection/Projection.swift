/// A view of an object with some of its properties, or those of linked objects, under names of its own.
///
/// ```swift
/// class Passenger: Projection<Person> {
///     @Projected(\Person.firstName) var name
///     @Projected(\Person.address?.city) var city
///     @Projected(\Person.friends.projectTo.firstName) var friends
/// }
/// let all = realm.objects(Passenger.self)
/// ```
/// A projection is live, as is its object. Results of projections are queried and sorted by the object's properties.
open class Projection<Root: ObjectBase & RealmCollectionValue>: RealmCollectionValue, ProjectionObservable, CustomStringConvertible {
    /// The object behind the projection.
    public final let rootObject: Root

    /// Creates a projection of an object.
    public required init(projecting object: Root) { rootObject = object }

    /// The Realm that manages the object; nil if it is unmanaged.
    public var realm: Realm? { rootObject.managingCore.map { Realm(core: $0) } }

    /// `true` if the object has been deleted from its Realm.
    public var isInvalidated: Bool { rootObject.isGone }

    /// `true` if both have the same class and the same object.
    public static func == (lhs: Projection, rhs: Projection) -> Bool {
        type(of: lhs) == type(of: rhs) && lhs.rootObject == rhs.rootObject
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rootObject) }

    /// A debug description: the class and the values of its properties.
    open var description: String {
        let properties = ProjectionSchema.of(self).properties.map {
            "\n\t\($0.name) = \($0.value(of: rootObject).map { "\($0)" } ?? "nil");"
        }
        return "\(type(of: self)) {\(properties.joined())\n}"
    }

    // MARK: As an element of results

    public typealias PersistedType = Root

    public static func _object(of row: _RowCache) -> Self? { Root._object(of: row).map { Self(projecting: $0) } }
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        Self(projecting: Root._make(from: stored, of: owner, slot: slot))
    }
    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> Self {
        Self(projecting: Root._makeElement(from: stored, at: place))
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue { rootObject._stored(in: owner) }
    public static func _default() -> Self { Self(projecting: Root._default()) }
    public static func _coerce(_ value: Any) -> Self? { (value as? Self) ?? Root._coerce(value).map { Self(projecting: $0) } }
    public static var _kind: _PropertyKind { Root._kind }
    public static var _hasPlace: Bool { Root._hasPlace }
    public var _untyped: Any? { rootObject }
}

@available(*, unavailable)
extension Projection: Sendable {}

extension Projection: ThreadConfined {
    public func _locator() -> _Locator? {
        guard let core = rootObject.managingCore, let locator = rootObject._locator() else { return nil }
        let type = type(of: self)
        return _Locator(core) { core in (locator.find(core) as? Root).map { type.init(projecting: $0) } }
    }
}

/// A property of a `Projection`: one of the object, or of an object that it links to.
@propertyWrapper
public struct Projected<T: ObjectBase & RealmCollectionValue, Value>: AnyProjected {
    private let keyPath: KeyPath<T, Value>

    /// Creates a projected property.
    /// - Parameter projectedKeyPath: The path to the value. If it is writable, the setter sets the object's property.
    public init(_ projectedKeyPath: KeyPath<T, Value>) { keyPath = projectedKeyPath }

    var projectedKeyPath: AnyKeyPath { keyPath }

    @available(*, unavailable, message: "@Projected can only be used as a property on a Projection")
    public var wrappedValue: Value {
        get { throwRealmException("@Projected can only be used as a property on a Projection.") }
        set { throwRealmException("@Projected can only be used as a property on a Projection.") }
    }

    /// The value of the property. The setter traps if the key path crosses an optional.
    public static subscript<EnclosingSelf: Projection<T>>(
        _enclosingInstance observed: EnclosingSelf, wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
        storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Self>
    ) -> Value {
        get { observed.rootObject[keyPath: observed[keyPath: storageKeyPath].keyPath] }
        set {
            guard let keyPath = observed[keyPath: storageKeyPath].keyPath as? ReferenceWritableKeyPath<T, Value> else {
                throwRealmException("The projected property cannot be set: its key path goes through a value that may be missing.")
            }
            observed.rootObject[keyPath: keyPath] = newValue
        }
    }
}

extension Results where Element: ObjectBase {
    /// The same objects as projections of a class.
    public func `as`<P: Projection<Element>>(_ type: P.Type) -> Results<P> { Results<P>(storage: storage) }
}

extension Projection: RealmFetchable where Root: Object {
    public static var _fetched: ObjectBase.Type { Root.self }
}
