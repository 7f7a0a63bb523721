/// Queries on the stored values of enumerations and custom types, such as `BEGINSWITH` on an enumeration of texts.

// MARK: Enumerations

extension Query where T: PersistableEnum {
    /// The stored value.
    public var rawValue: Query<T.RawValue> { Query<T.RawValue>(node) }
}

extension Query where T: _QueryOptionalEnum {
    /// The stored value.
    public var rawValue: Query<T.RawValueOrNil> { Query<T.RawValueOrNil>(node) }
}

// The members below may return any kind of collection: all have the same operations.

extension Query where T: RealmCollection, T.Element: PersistableEnum, T.Element.RawValue: RealmCollectionValue {
    /// The stored values.
    public var rawValue: Query<AnyRealmCollection<T.Element.RawValue>> { Query<AnyRealmCollection<T.Element.RawValue>>(node) }
}

extension Query where T: RealmCollection, T.Element: _QueryOptionalEnum, T.Element.RawValueOrNil: RealmCollectionValue {
    /// The stored values.
    public var rawValue: Query<AnyRealmCollection<T.Element.RawValueOrNil>> {
        Query<AnyRealmCollection<T.Element.RawValueOrNil>>(node)
    }
}

extension Query where T: RealmKeyedCollection, T.Value: PersistableEnum, T.Value.RawValue: RealmCollectionValue {
    /// The stored values.
    public var rawValue: Query<Map<T.Key, T.Value.RawValue>> { Query<Map<T.Key, T.Value.RawValue>>(node) }
}

extension Query where T: RealmKeyedCollection, T.Value: _QueryOptionalEnum, T.Value.RawValueOrNil: RealmCollectionValue {
    /// The stored values.
    public var rawValue: Query<Map<T.Key, T.Value.RawValueOrNil>> { Query<Map<T.Key, T.Value.RawValueOrNil>>(node) }
}

/// An optional enumeration.
public protocol _QueryOptionalEnum { associatedtype RawValueOrNil }
extension Optional: _QueryOptionalEnum where Wrapped: PersistableEnum { public typealias RawValueOrNil = Wrapped.RawValue? }

// MARK: Everything that can be stored

extension Query where T: _OptionalPersistable {
    /// The stored value.
    public var persistableValue: Query<T.PersistedType> { Query<T.PersistedType>(node) }
}

extension Query where T: _QueryOptional {
    /// The stored value.
    public var persistableValue: Query<T.PersistedTypeOrNil> { Query<T.PersistedTypeOrNil>(node) }
}

extension Query where T: RealmCollection, T.Element.PersistedType: RealmCollectionValue {
    /// The stored values.
    public var persistableValue: Query<AnyRealmCollection<T.Element.PersistedType>> {
        Query<AnyRealmCollection<T.Element.PersistedType>>(node)
    }
}

extension Query where T: RealmKeyedCollection, T.Value.PersistedType: RealmCollectionValue {
    /// The stored values.
    public var persistableValue: Query<Map<T.Key, T.Value.PersistedType>> { Query<Map<T.Key, T.Value.PersistedType>>(node) }
}

/// An optional value.
public protocol _QueryOptional { associatedtype PersistedTypeOrNil }
extension Optional: _QueryOptional where Wrapped: _OptionalPersistable {
    public typealias PersistedTypeOrNil = Wrapped.PersistedType?
}
