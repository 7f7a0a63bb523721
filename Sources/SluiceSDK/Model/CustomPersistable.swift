/// An app's type that is stored as another persistable type.
public protocol _CustomPersistable: _OptionalPersistable, RealmCollectionValue
where PersistedType: _OptionalPersistable & RealmCollectionValue {
    /// The stored value.
    var persistableValue: PersistedType { get }
    static func _fromPersisted(_ value: PersistedType) -> Self?
}

/// An app's type that is stored as another persistable type and can always be read back.
///
/// ```swift
/// struct Celsius: CustomPersistable {
///     var degrees: Double
///     init(persistedValue: Double) { degrees = persistedValue }
///     var persistableValue: Double { degrees }
/// }
/// ```
public protocol CustomPersistable: _CustomPersistable {
    // Declared again so that it is inferred from the members below.
    associatedtype PersistedType
    /// Creates the value from its stored value.
    init(persistedValue: PersistedType)
    /// The stored value.
    var persistableValue: PersistedType { get }
}

/// An app's type that is stored as another persistable type and cannot always be read back.
/// An unreadable value reads as nil if the property is optional; otherwise it ends the program.
public protocol FailableCustomPersistable: _CustomPersistable {
    // Declared again so that it is inferred from the members below.
    associatedtype PersistedType
    /// Creates the value from its stored value; nil if it is invalid. It must not be nil for the stored type's default.
    init?(persistedValue: PersistedType)
    /// The stored value.
    var persistableValue: PersistedType { get }
}

extension CustomPersistable {
    public static func _fromPersisted(_ value: PersistedType) -> Self? { Self(persistedValue: value) }
}

extension FailableCustomPersistable {
    public static func _fromPersisted(_ value: PersistedType) -> Self? { Self(persistedValue: value) }
}

extension _CustomPersistable {
    private static func required(_ value: PersistedType) -> Self {
        guard let own = _fromPersisted(value) else {
            throwRealmException("Failed to convert persisted value '\(value)' to type '\(Self.self)' in a non-optional context.")
        }
        return own
    }

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        // Null is an embedded object that does not exist yet; scalars always have a value.
        if case .null = stored { return _default() }
        return required(PersistedType._make(from: stored, of: owner, slot: slot))
    }

    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> Self {
        required(PersistedType._makeElement(from: stored, at: place))
    }

    public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        PersistedType._makeOptional(from: stored, of: owner, slot: slot).flatMap { _fromPersisted($0) }
    }

    public static func _makeOptionalElement(from stored: _StoredValue, at place: _Place) -> Self? {
        PersistedType._makeOptionalElement(from: stored, at: place).flatMap { _fromPersisted($0) }
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue { persistableValue._stored(in: owner) }

    public static func _default() -> Self {
        guard let own = _fromPersisted(PersistedType._default()) else {
            throwRealmException(
                "Failed to default construct a \(Self.self) using the default value for persisted type \(PersistedType.self). "
                    + "Give the property a default value or make it optional.")
        }
        return own
    }

    public static func _coerce(_ value: Any) -> Self? {
        (value as? Self) ?? PersistedType._coerce(value).flatMap { _fromPersisted($0) }
    }

    public static var _hasPlace: Bool { PersistedType._hasPlace }
    public var _untyped: Any? { persistableValue._untyped }
    public static var _kind: _PropertyKind { PersistedType._kind }
    public func hash(into hasher: inout Hasher) { persistableValue.hash(into: &hasher) }
}
