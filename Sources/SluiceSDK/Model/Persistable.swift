public import Foundation
import SluiceCore
import SluiceValues

/// The schema's view of a Swift type.
public struct _PropertyKind {
    var type: SluiceCore.PropertyType
    var collection: CollectionKind = .none
    var isOptional = false
    /// The class of a link or an embedded object. It becomes part of the schema.
    var target: ObjectBase.Type?
    /// `true` for a property that is computed from others and not stored.
    var isComputed = false

    var isLink: Bool { if case .link = type { true } else { false } }

    /// Returns the property's type in a collection of this element.
    func inCollection(_ collection: CollectionKind) -> _PropertyKind {
        var kind = self
        // Links, embedded objects and mixed values imply their optionality in collections; scalars may be optional.
        if target != nil || type == .mixed { kind.isOptional = false }
        kind.collection = collection
        return kind
    }
}

/// A type that `@Persisted` can store. Its members are for the wrapper, not for apps.
public protocol _Persistable: SendableMetatype {
    /// The stored type: the type itself, the raw value's, or the persisted type of a custom type.
    associatedtype PersistedType
    /// Returns the value of a stored form; `owner` is the managed object with the property.
    static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self
    /// Returns the value in a row's memory. Numbers are read in place, without counting references of a text or box.
    static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Self
    /// Returns the value of an element of a managed collection.
    static func _makeElement(from stored: _StoredValue, at place: _Place) -> Self
    /// Makes an unmanaged value the accessor of its place. Called after the value was stored.
    func _attach(to owner: ObjectBase, slot: Int32)
    func _attach(at place: _Place)
    /// Returns the form to store. A link to an unmanaged object adds the target to the Realm of `owner`.
    func _stored(in owner: ObjectBase) -> _StoredValue
    /// Returns the initial value of a property without one.
    static func _default() -> Self
    /// Returns the content of an unmanaged object's wrapper for a value.
    static func _hold(_ value: Self) -> _HeldValue
    /// Returns the value of a content that `_hold` created.
    static func _value(of held: _HeldValue) -> Self
    /// Returns a value that records which of its properties are read.
    static func _traced(_ trace: _KeyPathTrace) -> Self
    /// Converts an untyped value of a dictionary or array; nil if it does not fit.
    static func _coerce(_ value: Any) -> Self?
    static var _kind: _PropertyKind { get }
    /// `true` if values are accessors of their place, so that they must be attached when it changes.
    static var _hasPlace: Bool { get }
    /// The value as dynamic access shows it; nil for null.
    var _untyped: Any? { get }
}

/// A type that can be a primary key.
public protocol _PrimaryKey: _Persistable {}
/// A type that can have an index.
public protocol _Indexable: _Persistable {}
/// A type that can be the element of a collection.
public protocol RealmCollectionValue: _Persistable, Hashable {
    /// Returns the object of a row; nil for a type that is not an object.
    static func _object(of row: _RowCache) -> Self?
}

extension RealmCollectionValue {
    public static func _object(of row: _RowCache) -> Self? { nil }
}

/// A type whose optional `@Persisted` can store.
public protocol _OptionalPersistable: _Persistable {
    /// Returns the value, or nil for a link whose target is not on the device; otherwise the same as `_make`.
    static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self?
    static func _makeOptionalElement(from stored: _StoredValue, at place: _Place) -> Self?
    /// Attaches an optional property's value after it was set.
    static func _attachOptional(_ value: Self?, to owner: ObjectBase, slot: Int32)
}

extension _OptionalPersistable {
    @inlinable public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        if case .null = stored { return nil }
        return _make(from: stored, of: owner, slot: slot)
    }
    public static func _makeOptionalElement(from stored: _StoredValue, at place: _Place) -> Self? {
        if case .null = stored { return nil }
        return _makeElement(from: stored, at: place)
    }
    @inlinable @inline(__always) public static func _attachOptional(_ value: Self?, to owner: ObjectBase, slot: Int32) {}
}

extension _Persistable {
    @inlinable public static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Self {
        _make(from: stored.pointee, of: owner, slot: slot)
    }
    public static func _traced(_ trace: _KeyPathTrace) -> Self { _default() }
    /// Casts the value itself, which suits most types.
    public static func _coerce(_ value: Any) -> Self? { value as? Self }
    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> Self {
        _make(from: stored, of: place.owner, slot: Int32(place.slot))
    }
    @inlinable @inline(__always) public func _attach(to owner: ObjectBase, slot: Int32) {}
    @inlinable public func _attach(at place: _Place) {}
    public static var _hasPlace: Bool { false }
    public var _untyped: Any? { self }
}

extension Bool: _PrimaryKey, _Indexable, RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Bool
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Bool {
        if case .bool(let value) = stored { return value }
        return false
    }
    @inlinable public static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Bool {
        if case .bool(let value) = stored.pointee { return value }
        return false
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { .bool(self) }
    @inlinable public static func _default() -> Bool { false }
    public static var _kind: _PropertyKind { _PropertyKind(type: .bool) }
}

/// An integer of any width. All are stored as 64 bits.
public protocol _PersistableInteger: FixedWidthInteger, _PrimaryKey, _Indexable, RealmCollectionValue, _OptionalPersistable {}

extension _PersistableInteger {
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        if case .int(let value) = stored { return Self(truncatingIfNeeded: value) }
        return 0
    }
    @inlinable public static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Self {
        if case .int(let value) = stored.pointee { return Self(truncatingIfNeeded: value) }
        return 0
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { .int(Int64(self)) }
    @inlinable public static func _default() -> Self { 0 }
    /// Converts an integer of any width if it fits.
    public static func _coerce(_ value: Any) -> Self? {
        if let value = value as? Self { return value }
        return (value as? any BinaryInteger).flatMap { Self(exactly: $0) }
    }
    public static var _kind: _PropertyKind { _PropertyKind(type: .int) }
}

extension Int: _PersistableInteger {
    public typealias PersistedType = Int
}
extension Int8: _PersistableInteger {
    public typealias PersistedType = Int8
}
extension Int16: _PersistableInteger {
    public typealias PersistedType = Int16
}
extension Int32: _PersistableInteger {
    public typealias PersistedType = Int32
}
extension Int64: _PersistableInteger {
    public typealias PersistedType = Int64
}

extension Float: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Float
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Float {
        if case .float(let value) = stored { return value }
        return 0
    }
    @inlinable public static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Float {
        if case .float(let value) = stored.pointee { return value }
        return 0
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { .float(self) }
    @inlinable public static func _default() -> Float { 0 }
    public static func _coerce(_ value: Any) -> Float? {
        (value as? Float) ?? (value as? Double).map { Float($0) } ?? (value as? any BinaryInteger).map { Float($0) }
    }
    public static var _kind: _PropertyKind { _PropertyKind(type: .float) }
}

extension Double: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Double
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Double {
        if case .double(let value) = stored { return value }
        return 0
    }
    @inlinable public static func _read(_ stored: UnsafePointer<_StoredValue>, of owner: ObjectBase, slot: Int32) -> Double {
        if case .double(let value) = stored.pointee { return value }
        return 0
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { .double(self) }
    @inlinable public static func _default() -> Double { 0 }
    public static func _coerce(_ value: Any) -> Double? {
        (value as? Double) ?? (value as? Float).map { Double($0) } ?? (value as? any BinaryInteger).map { Double($0) }
    }
    public static var _kind: _PropertyKind { _PropertyKind(type: .double) }
}

extension String: _PrimaryKey, _Indexable, RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = String
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> String {
        if case .string(let value) = stored { return value }
        return ""
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { .string(self) }
    @inlinable public static func _default() -> String { "" }
    public static var _kind: _PropertyKind { _PropertyKind(type: .string) }
}

extension Data: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Data
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Data {
        if case .boxed(let box) = stored, case .binary(let bytes) = box.value { return Data(bytes) }
        return Data()
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue { .boxed(_BoxedValue(.binary(Array(self)))) }
    public static func _default() -> Data { Data() }
    public static var _kind: _PropertyKind { _PropertyKind(type: .binary) }
}

extension Date: _Indexable, RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Date
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Date {
        if case .boxed(let box) = stored, case .timestamp(let time) = box.value { return Date(time) }
        return Date(timeIntervalSince1970: 0)
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue { .boxed(_BoxedValue(.timestamp(timestamp))) }
    public static func _default() -> Date { Date() }
    public static var _kind: _PropertyKind { _PropertyKind(type: .timestamp) }
}

extension Date {
    /// Seconds and nanoseconds, split so that the conversion back gives the same `Double`.
    var timestamp: Timestamp {
        let reference = timeIntervalSinceReferenceDate
        guard reference.isFinite, abs(reference) < 9e15 else { return Timestamp(seconds: reference > 0 ? .max : .min) }
        let whole = reference.rounded(.down)
        var seconds = Int64(whole) + Int64(Date.timeIntervalBetween1970AndReferenceDate)
        var nanoseconds = Int32(((reference - whole) * 1e9).rounded())
        if nanoseconds == 1_000_000_000 { (seconds, nanoseconds) = (seconds + 1, 0) }
        // Both parts must have the same sign.
        if seconds < 0 && nanoseconds > 0 { (seconds, nanoseconds) = (seconds + 1, nanoseconds - 1_000_000_000) }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }

    init(_ time: Timestamp) {
        let seconds = Double(time.seconds) - Date.timeIntervalBetween1970AndReferenceDate
        self.init(timeIntervalSinceReferenceDate: seconds + Double(time.nanoseconds) / 1e9)
    }
}

extension UUID: _PrimaryKey, _Indexable, RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = UUID
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> UUID {
        if case .boxed(let box) = stored, case .uuid(let bytes) = box.value { return UUID(bytes) }
        return UUID(UUIDBytes(high: 0, low: 0))
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue {
        .boxed(_BoxedValue(.uuid(UUIDBytes(bytes: withUnsafeBytes(of: uuid) { Array($0) }))))
    }
    public static func _default() -> UUID { UUID() }
    public static var _kind: _PropertyKind { _PropertyKind(type: .uuid) }

    init(_ bytes: UUIDBytes) {
        var raw: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &raw) { $0.copyBytes(from: bytes.bytes) }
        self.init(uuid: raw)
    }
}

extension ObjectId: _PrimaryKey, _Indexable, RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = ObjectId
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        if case .boxed(let box) = stored, case .objectId(let bytes) = box.value { return Self(bytes) }
        return Self(ObjectIdentifierBytes(high: 0, low: 0))
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue { .boxed(_BoxedValue(.objectId(bytes))) }
    public static func _default() -> Self { Self.init() }
    public static var _kind: _PropertyKind { _PropertyKind(type: .objectId) }
}

extension Decimal128: RealmCollectionValue, _OptionalPersistable {
    public typealias PersistedType = Decimal128
    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Decimal128 {
        if case .boxed(let box) = stored, case .decimal(let bits) = box.value { return Decimal128(bits) }
        return Decimal128()
    }
    public func _stored(in owner: ObjectBase) -> _StoredValue { .boxed(_BoxedValue(.decimal(bits))) }
    public static func _default() -> Decimal128 { Decimal128() }
    /// Converts a number of any type, or a text with a number.
    public static func _coerce(_ value: Any) -> Decimal128? { Decimal128(untyped: value) }
    public static var _kind: _PropertyKind { _PropertyKind(type: .decimal) }
}

extension Optional: _Persistable where Wrapped: _OptionalPersistable {
    public typealias PersistedType = Wrapped.PersistedType
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Wrapped? {
        Wrapped._makeOptional(from: stored, of: owner, slot: slot)
    }
    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> Wrapped? {
        Wrapped._makeOptionalElement(from: stored, at: place)
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { self?._stored(in: owner) ?? .null }
    @inlinable public static func _default() -> Wrapped? { nil }
    public static func _traced(_ trace: _KeyPathTrace) -> Wrapped? { Wrapped._traced(trace) }
    public static func _coerce(_ value: Any) -> Wrapped?? {
        if value is NSNull { return .some(nil) }
        if case Optional<Any>.none = value { return .some(nil) }
        return Wrapped._coerce(value).map { .some($0) }
    }
    @inlinable @inline(__always) public func _attach(to owner: ObjectBase, slot: Int32) {
        Wrapped._attachOptional(self, to: owner, slot: slot)
    }
    public func _attach(at place: _Place) { self?._attach(at: place) }
    public static var _hasPlace: Bool { Wrapped._hasPlace }
    public var _untyped: Any? { self?._untyped }
    public static var _kind: _PropertyKind {
        var kind = Wrapped._kind
        kind.isOptional = true
        return kind
    }
}

extension Optional: RealmCollectionValue where Wrapped: _OptionalPersistable & RealmCollectionValue {
    public static func _object(of row: _RowCache) -> Wrapped?? { Wrapped._object(of: row).map { .some($0) } }
}

/// An enumeration that `@Persisted` stores as its raw value.
public protocol PersistableEnum: _OptionalPersistable, RealmCollectionValue, RawRepresentable, CaseIterable
where RawValue: _OptionalPersistable, PersistedType == RawValue.PersistedType {}

extension PersistableEnum {
    @inlinable public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self {
        Self(rawValue: RawValue._make(from: stored, of: owner, slot: slot)) ?? _default()
    }
    /// Returns nil for a raw value without a case.
    @inlinable public static func _makeOptional(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> Self? {
        if case .null = stored { return nil }
        return Self(rawValue: RawValue._make(from: stored, of: owner, slot: slot))
    }
    @inlinable public func _stored(in owner: ObjectBase) -> _StoredValue { rawValue._stored(in: owner) }
    /// Returns the first case.
    @inlinable public static func _default() -> Self {
        guard let first = allCases.first else { _noCases(Self.self) }
        return first
    }
    public static func _coerce(_ value: Any) -> Self? {
        (value as? Self) ?? RawValue._coerce(value).flatMap { Self(rawValue: $0) }
    }
    public var _untyped: Any? { rawValue._untyped }
    public static var _kind: _PropertyKind { RawValue._kind }
}

@usableFromInline func _noCases(_ type: Any.Type) -> Never { throwRealmException("The enumeration \(type) has no cases.") }
