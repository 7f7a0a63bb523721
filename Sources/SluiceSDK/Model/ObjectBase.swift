import SluiceCore

/// The common base of all model classes. Inherit from `Object`, `EmbeddedObject` or `AsymmetricObject` instead.
open class ObjectBase: Hashable, CustomStringConvertible {
    // Unchecked because: an object belongs to one thread or actor like its Realm, and the check costs more than the access.
    /// The row when a Realm manages the object.
    @exclusivity(unchecked) public final var _row: _RowCache? { didSet { _head = _row?.head } }
    /// The memory of the row: reading it so counts no references.
    @exclusivity(unchecked) public private(set) final var _head: UnsafeMutablePointer<_RowHead>?
    /// Set on the one instance per class that finds out property names.
    @exclusivity(unchecked) public final var _trace: _KeyPathTrace?
    /// The slots that `init(value:)` gave values, so that an update leaves the others alone; nil when made otherwise.
    final var assigned: Set<Int>?
    /// Set when the object was created as asymmetric or deleted: it cannot be used with a Realm again.
    final var isConsumed = false

    /// An object that no Realm manages, with the defaults of its class.
    public required init() {}

    /// Makes the value of a slot of a managed object current.
    @inline(never) public final func _load(_ slot: Int32) {
        // Without the row, whose reference would be counted.
        if let head = _head, head.pointee.hasPart(Int(slot)) { return }
        _row?.load(Int(slot))
    }

    /// The Realm that manages the object; nil when none does.
    final var managingCore: RealmCore? { _row?.core }

    final var model: ModelSchema { _row?.schema ?? ModelSchema.of(type(of: self)) }

    /// The class's name in the schema. Do not override it; see `_realmObjectName`.
    open class func className() -> String { _realmObjectName() ?? String(describing: self) }

    /// A name for the schema other than the class's own; nil: the class's own.
    open class func _realmObjectName() -> String? { nil }

    /// Names in the file and on the server by property name, where they differ.
    open class func propertiesMapping() -> [String: String] { [:] }

    /// Whether the class is one of those that a Realm without `objectTypes` has.
    open class func shouldIncludeInDefaultSchema() -> Bool { !_realmIgnoreClass() }

    /// Whether the class is never part of a schema by itself.
    open class func _realmIgnoreClass() -> Bool { false }

    /// Whether the object has been deleted from its Realm.
    final var isGone: Bool {
        guard let row = _row else { return isConsumed }
        if row.place?.isGone == true { return true }
        return row.isGone
    }

    /// Two objects are the same when they stand for the same row, or place, of the same Realm, or are identical.
    public static func == (lhs: ObjectBase, rhs: ObjectBase) -> Bool {
        if lhs === rhs { return true }
        guard let left = lhs._row, let right = rhs._row, left.core === right.core else { return false }
        guard let place = left.place else { return right.place == nil && left.type == right.type && left.key == right.key }
        guard let other = right.place, !place.isGone, !other.isGone else { return false }
        return place.address == other.address
    }

    public func hash(into hasher: inout Hasher) {
        if let row = _row {
            hasher.combine(row.schema.name)
            hasher.combine(row.key)
        } else {
            hasher.combine(ObjectIdentifier(self))
        }
    }

    /// The class and the values, for people.
    public var description: String { ObjectDescription.text(self, depth: 0) }

    /// The value of a property by name: nil when it is null, the raw value of an enumeration. A property that the class does
    /// not have ends the program.
    public subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }
}

@available(*, unavailable)
extension ObjectBase: Sendable {}

/// Collects the slots that a key path passes through.
public final class _KeyPathTrace {
    @usableFromInline var slots: [Int32] = []
}

/// A class whose objects are stored, synced and shown in `Results`. It needs a primary key named `_id` to be synced.
open class Object: ObjectBase {
    /// An object that no Realm manages, with the defaults of its class.
    public required init() {
        super.init()
        if let values = Self.defaultPropertyValues() { ModelSchema.begin(self, with: values) }
    }

    /// An object with values: a dictionary by property name, an array in the order of the properties, or another object.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }

    /// The Realm that manages the object; nil when none does.
    public var realm: Realm? { managingCore.map { Realm(core: $0) } }

    /// Whether the object has been deleted from its Realm.
    public var isInvalidated: Bool { isGone }

    /// Whether two objects stand for the same row.
    public func isSameObject(as other: Object?) -> Bool { other.map { $0 == self } ?? false }

    // MARK: What a class may say about its properties

    /// The name of the primary key; nil when there is none. Overriding it names the key of a class that declares none.
    open class func primaryKey() -> String? { ModelSchema.declared(self).primaryKey }

    /// The names of the properties with an index: those that are declared `indexed`. An overriding method adds others.
    open class func indexedProperties() -> [String] { ModelSchema.declared(self).indexed }

    /// The names of properties that are not stored, whatever their wrapper. They keep their values while no Realm manages the object.
    open class func ignoredProperties() -> [String] { [] }

    /// The names of optional properties that must not be nil when they are stored.
    open class func requiredProperties() -> [String] { [] }

    /// Initial values by property name, in place of those of the types; nil: none. They are asked for with every new object.
    open class func defaultPropertyValues() -> [String: Any]? { nil }

    /// The inverse links by property name: those that are declared with an `originProperty`.
    public class func linkingObjectsProperties() -> [String: PropertyDescriptor] { ModelSchema.of(self).inverseDescriptors }
}

/// The other end of an inverse link.
public struct PropertyDescriptor: Hashable, Sendable {
    /// The class whose objects link here.
    public let objectClass: String
    /// Its property that does.
    public let propertyName: String
}

/// A class whose objects are only ever sent (data ingest): created with `Realm.create`, they leave the device as soon as
/// the server has them and can be neither queried nor observed.
open class AsymmetricObject: ObjectBase {
    /// An object with values: a dictionary by property name, or an array in the order of the properties.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }
}

/// A link to an object: stored as the target's primary key.
extension Object: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Object

    /// The target; an object that is not on the device reads as an unmanaged object with defaults.
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        _makeOptional(from: stored, of: owner, slot: slot) ?? Self()
    }

    /// The target; nil when it is not on the device or the link is null.
    public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        if case .null = stored { return nil }
        guard let row = owner._row else { return nil }
        // A dynamic object stands for whatever class the property links to.
        let kind = row.schema.properties[Int(slot)].kind
        let type = Self.self == DynamicObject.self ? row.core.type(linkedBy: kind) : row.core.type(of: Self.self)
        return row.core.object(Self.self, type: type, key: stored.value)
    }

    public static func _object(of row: _RowCache) -> Self? {
        let object = Self()
        row.schema.bind(object, to: row, attaching: false)
        return object
    }

    public static func _makeOptionalElement(from stored: _StoredValue, at place: _Place) -> Self? {
        _makeOptional(from: stored, of: place.owner, slot: Int32(place.slot))
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        if let core = owner.managingCore { core.adopt(self) }
        if let row = _row { return _StoredValue(row.key) }
        return _StoredValue(model.primaryKey(of: self))
    }

    public static func _default() -> Self { Self() }

    public static func _traced(_ trace: _KeyPathTrace) -> Self { ModelSchema.of(self).traced(trace) as? Self ?? Self() }

    public static func _coerce(_ value: Any) -> Self? {
        if let object = value as? Self { return object }
        if value is [String: Any] || value is [Any] || value is Object {
            let object = Self()
            object.model.assign(value, to: object)
            return object
        }
        return nil
    }

    public static var _kind: _PropertyKind {
        _PropertyKind(type: .link(to: className()), isOptional: true, target: Self.self)
    }
}

extension Value {
    /// As a plain Swift value, for untyped access.
    var plain: Any? {
        switch self {
        case .null: nil
        case .bool(let v): v
        case .int(let v): Int(v)
        case .float(let v): v
        case .double(let v): v
        case .string(let v): v
        case .list(let v): v.map { $0.plain }
        case .dictionary(let v): v.mapValues { $0.plain }
        case .objectId(let v): ObjectId(v)
        case .decimal(let v): Decimal128(v)
        default: wide
        }
    }
}
