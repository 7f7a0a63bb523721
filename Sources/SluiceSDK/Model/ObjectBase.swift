import SluiceCore

/// The common base of all model classes. Inherit from `Object` or `AsymmetricObject` instead.
open class ObjectBase: Hashable, CustomStringConvertible {
    // Unchecked because: an object belongs to one thread or actor like its Realm, and the check costs more than the access.
    /// The values when a Realm manages the object.
    @exclusivity(unchecked) public final var _row: _RowCache?
    /// Set on the one instance per class that finds out property names.
    @exclusivity(unchecked) public final var _trace: _KeyPathTrace?
    /// Set when the object was created as asymmetric or deleted: it cannot be used with a Realm again.
    final var isConsumed = false

    /// An object that no Realm manages, with the defaults of its class.
    public required init() {}

    /// The Realm that manages the object; nil when none does.
    final var managingCore: RealmCore? { _row?.core }

    final var model: ModelSchema { ModelSchema.of(type(of: self)) }

    /// The class's name in the schema.
    open class func className() -> String { String(describing: self) }

    /// Names in the schema by property name, where they differ. Not used yet.
    open class func propertiesMapping() -> [String: String] { [:] }

    /// Two objects are the same when they stand for the same row of the same Realm, or are identical.
    public static func == (lhs: ObjectBase, rhs: ObjectBase) -> Bool {
        if lhs === rhs { return true }
        guard let left = lhs._row, let right = rhs._row else { return false }
        return left.core === right.core && left.type == right.type && left.key == right.key
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
    public var description: String {
        let schema = model
        let lines = schema.properties.indices.map { "\t\(schema.properties[$0].name) = \(schema.value(of: self, slot: $0));" }
        return "\(schema.name) {\n\(lines.joined(separator: "\n"))\n}"
    }

    /// The value of a property by name; nil when it is null or there is no such property.
    public subscript(key: String) -> Any? {
        guard let slot = model.slot(of: key) else { return nil }
        return model.value(of: self, slot: slot).plain
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
    /// An object with values: a dictionary by property name, or an array in the order of the properties.
    public convenience init(value: Any) {
        self.init()
        model.assign(value, to: self)
    }

    /// The Realm that manages the object; nil when none does.
    public var realm: Realm? { managingCore.map { Realm(core: $0) } }

    /// Whether the object has been deleted from its Realm.
    public var isInvalidated: Bool {
        guard let row = _row else { return isConsumed }
        if row.generation != row.clock.generation { row.reload() }
        return row.isInvalidated
    }

    /// Whether two objects stand for the same row.
    public func isSameObject(as other: Object?) -> Bool { other.map { $0 == self } ?? false }
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
    /// The target; an object that is not on the device reads as an unmanaged object with defaults.
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        _makeOptional(from: stored, of: owner, slot: slot) ?? Self()
    }

    /// The target; nil when it is not on the device or the link is null.
    public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        if case .null = stored { return nil }
        return owner.managingCore?.object(Self.self, key: stored.value)
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        if let row = _row { return _StoredValue(row.key) }
        if let core = owner.managingCore { core.add(self, update: .error) }
        return _StoredValue(model.primaryKey(of: self))
    }

    public static func _default() -> Self { Self() }

    public static func _coerce(_ value: Any) -> Self? {
        if let object = value as? Self { return object }
        if value is [String: Any] || value is [Any] {
            let object = Self()
            ModelSchema.of(Self.self).assign(value, to: object)
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
