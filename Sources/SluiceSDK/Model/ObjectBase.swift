import SluiceCore

/// The common base of all model classes. Apps inherit from `Object`, `EmbeddedObject` or `AsymmetricObject` instead.
open class ObjectBase: Hashable, CustomStringConvertible {
    // Unchecked because: an object belongs to one thread or actor like its Realm, and the check costs more than the access.
    /// The row of a managed object; nil for an unmanaged one.
    @exclusivity(unchecked) public final var _row: _RowCache? { didSet { _head = _row?.head } }
    /// The memory of the row. Reading it counts no references.
    @exclusivity(unchecked) public private(set) final var _head: UnsafeMutablePointer<_RowHead>?
    /// The trace of key paths. Set on one instance per class and on those that its trace creates.
    @exclusivity(unchecked) public final var _trace: _KeyPathTrace?
    /// The slots that `init(value:)` assigned; an update leaves the others unchanged. Nil for other initializers.
    final var assigned: Set<Int>?
    /// `true` after the object was created as asymmetric or deleted. It cannot be used with a Realm again.
    final var isConsumed = false

    /// Creates an unmanaged object with the defaults of its class.
    public required init() {}

    /// Makes the value of a slot of a managed object current.
    @inline(never) public final func _load(_ slot: Int32) {
        // Checked without the row, whose reference would be counted.
        if let head = _head, head.pointee.hasPart(Int(slot)) { return }
        _row?.load(Int(slot))
    }

    /// The Realm that manages the object; nil for an unmanaged object.
    final var managingCore: RealmCore? { _row?.core }

    final var model: ModelSchema { _row?.schema ?? ModelSchema.of(type(of: self)) }

    /// The class's name in the schema. Override `_realmObjectName` instead.
    open class func className() -> String { _realmObjectName() ?? String(describing: self) }

    /// A name for the schema other than the class's own; nil: the class's own.
    open class func _realmObjectName() -> String? { nil }

    /// The names in the file and on the server by property name, where they differ.
    open class func propertiesMapping() -> [String: String] { [:] }

    /// The names of properties that are not stored, even with a wrapper. Their values exist in the instance only.
    open class func ignoredProperties() -> [String] { [] }

    /// `true` if a Realm without `objectTypes` includes the class.
    open class func shouldIncludeInDefaultSchema() -> Bool { !_realmIgnoreClass() }

    /// `true` if the class is never part of a schema by default.
    open class func _realmIgnoreClass() -> Bool { false }

    /// `true` if the object has been deleted from its Realm, or an unmanaged object cannot be used any more.
    final var isGone: Bool {
        guard let row = _row else { return isConsumed }
        if row.place?.isGone == true { return true }
        return row.isGone
    }

    /// `true` if both are the same instance, or accessors of the same row or place in the same Realm.
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

    /// The class and its values as text.
    public var description: String { ObjectDescription.text(self, depth: 0) }

    /// The value of a property by name: nil for null, the raw value of an enumeration. An unknown name ends the program.
    public subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }
}

@available(*, unavailable)
extension ObjectBase: Sendable {}

/// Collects the slots along a key path.
public final class _KeyPathTrace {
    @usableFromInline var slots: [Int32] = []
}

/// A class whose objects are stored, synced and shown in `Results`. A synced class needs a primary key named `_id`.
open class Object: ObjectBase {
    /// Creates an unmanaged object with the defaults of its class.
    public required init() {
        super.init()
        if let values = Self.defaultPropertyValues() { ClassDeclarations.begin(self, with: values) }
    }

    /// Creates an unmanaged object from a dictionary by property name, an array in the order of the properties, or another object.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }

    /// The Realm that manages the object; nil for an unmanaged object.
    public var realm: Realm? { managingCore.map { Realm(core: $0) } }

    /// `true` if the object has been deleted from its Realm.
    public var isInvalidated: Bool { isGone }

    /// `true` if both objects are of the same row.
    public func isSameObject(as other: Object?) -> Bool { other.map { $0 == self } ?? false }

    // MARK: Declarations of a class

    /// The name of the primary key; nil for none. An override names the key of a class that declares none.
    open class func primaryKey() -> String? { ClassDeclarations.declared(self).primaryKey }

    /// The names of the properties with an index, by default those declared `indexed`. An override adds others.
    open class func indexedProperties() -> [String] { ClassDeclarations.declared(self).indexed }

    /// The names of optional properties that must not be nil when they are stored.
    open class func requiredProperties() -> [String] { [] }

    /// Initial values by property name, instead of the types' defaults; nil for none. Called for every new object.
    open class func defaultPropertyValues() -> [String: Any]? { nil }

    /// The inverse links declared with an `originProperty`, by property name.
    public class func linkingObjectsProperties() -> [String: PropertyDescriptor] { ModelSchema.of(self).inverseDescriptors }
}

/// The other end of an inverse link.
public struct PropertyDescriptor: Hashable, Sendable {
    /// The class whose objects link here.
    public let objectClass: String
    /// The property of that class with the link.
    public let propertyName: String
}

/// A class whose objects are sent only (data ingest), by `Realm.create`. An object leaves the device after the server has acknowledged it.
/// Queries and observers never see it.
open class AsymmetricObject: ObjectBase {
    /// Creates an unmanaged object from a dictionary by property name, an array in the order of the properties, or another object.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }
}

/// A link to an object, stored as the target's primary key.
extension Object: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Object

    /// Returns the target. A target that is not on the device reads as an unmanaged object with defaults.
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        _makeOptional(from: stored, of: owner, slot: slot) ?? Self()
    }

    /// Returns the target; nil if it is not on the device or the link is null.
    public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        if case .null = stored { return nil }
        guard let row = owner._row else { return nil }
        // A dynamic object may be of any class: the property's class counts.
        let kind = row.schema.properties[Int(slot)].kind
        let type = Self.self == DynamicObject.self ? row.core.classes.type(linkedBy: kind) : row.core.classes.type(of: Self.self)
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
        // An unmanaged target joins the owner's Realm first: a hidden key exists from then on only.
        if let core = owner.managingCore { core.transactions.adoption.adopt(self, in: core) }
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
    /// The value as a plain Swift value, for untyped access.
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
