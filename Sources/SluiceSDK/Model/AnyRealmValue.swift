public import Foundation
import SluiceCore

/// A value of any type that a property can have, including lists and dictionaries of such values.
public enum AnyRealmValue: Hashable {
    case none
    case int(Int)
    case bool(Bool)
    case float(Float)
    case double(Double)
    case string(String)
    case data(Data)
    case date(Date)
    case object(Object)
    case objectId(ObjectId)
    case decimal128(Decimal128)
    case uuid(UUID)
    case dictionary(Map<String, AnyRealmValue>)
    case list(List<AnyRealmValue>)

    /// Creates `none`, a null value.
    public init() { self = .none }

    public var intValue: Int? { if case .int(let value) = self { value } else { nil } }
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var floatValue: Float? { if case .float(let value) = self { value } else { nil } }
    public var doubleValue: Double? { if case .double(let value) = self { value } else { nil } }
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    public var dataValue: Data? { if case .data(let value) = self { value } else { nil } }
    public var dateValue: Date? { if case .date(let value) = self { value } else { nil } }
    public var objectIdValue: ObjectId? { if case .objectId(let value) = self { value } else { nil } }
    public var decimal128Value: Decimal128? { if case .decimal128(let value) = self { value } else { nil } }
    public var uuidValue: UUID? { if case .uuid(let value) = self { value } else { nil } }
    public var dictionaryValue: Map<String, AnyRealmValue>? { if case .dictionary(let value) = self { value } else { nil } }
    public var listValue: List<AnyRealmValue>? { if case .list(let value) = self { value } else { nil } }

    /// Returns the object if it is of the class.
    public func object<T: Object>(_ objectType: T.Type) -> T? { if case .object(let value) = self { value as? T } else { nil } }

    /// The object without its class, as a `DynamicObject`; nil for another value or an unmanaged object.
    public var dynamicObject: DynamicObject? {
        if case .object(let value) = self { DynamicObject.accessor(of: value) } else { nil }
    }

    /// Creates a value with a new unmanaged map.
    public static func fromDictionary(_ dictionary: [String: AnyRealmValue]) -> AnyRealmValue {
        let map = Map<String, AnyRealmValue>()
        for (key, value) in dictionary { map[key] = value }
        return .dictionary(map)
    }

    /// Creates a value with a new unmanaged list.
    public static func fromArray(_ array: [AnyRealmValue]) -> AnyRealmValue {
        let list = List<AnyRealmValue>()
        list.append(objectsIn: array)
        return .list(list)
    }
}

@available(*, unavailable)
extension AnyRealmValue: Sendable {}

extension AnyRealmValue: RealmCollectionValue {
    public typealias PersistedType = AnyRealmValue

    public static func _make(from stored: _StoredValue, of owner: ObjectBase, slot: Int32) -> AnyRealmValue {
        switch stored {
        case .null: .none
        case .bool(let value): .bool(value)
        case .int(let value): .int(Int(value))
        case .float(let value): .float(value)
        case .double(let value): .double(value)
        case .string(let value): .string(value)
        case .boxed(let box): AnyRealmValue(box.value, at: _Place(owner: owner, slot: Int(slot)))
        }
    }

    public static func _makeElement(from stored: _StoredValue, at place: _Place) -> AnyRealmValue {
        if case .boxed(let box) = stored { return AnyRealmValue(box.value, at: place) }
        return _make(from: stored, of: place.owner, slot: Int32(place.slot))
    }

    /// Converts a value that is neither a collection nor a link; others become `none`.
    init(scalar value: Value) {
        self =
            switch value {
            case .bool(let value): .bool(value)
            case .int(let value): .int(Int(value))
            case .float(let value): .float(value)
            case .double(let value): .double(value)
            case .string(let value): .string(value)
            case .binary(let bytes): .data(Data(bytes))
            case .timestamp(let time): .date(Date(time))
            case .objectId(let bytes): .objectId(ObjectId(bytes))
            case .decimal(let bits): .decimal128(Decimal128(bits))
            case .uuid(let bytes): .uuid(UUID(bytes))
            case .null, .list, .dictionary, .link: .none
            }
    }

    /// Converts a value outside of any object: a link becomes its target's key.
    init(unmanaged value: Value) {
        switch value {
        case .link(_, let key): self.init(scalar: key)
        case .list(let elements):
            let list = List<AnyRealmValue>()
            list.append(objectsIn: elements.map { AnyRealmValue(unmanaged: $0) })
            self = .list(list)
        case .dictionary(let members):
            let map = Map<String, AnyRealmValue>()
            for (key, member) in members { map[key] = AnyRealmValue(unmanaged: member) }
            self = .dictionary(map)
        default: self.init(scalar: value)
        }
    }

    private init(_ value: Value, at place: _Place) {
        switch value {
        case .link(let type, let key): self = place.core?.object(named: type, key: key).map { .object($0) } ?? .none
        case .list:
            // Registered, so that the accessor follows its element when the collection changes.
            place.core?.reading.accessors.insert(place)
            self = .list(List(place: place))
        case .dictionary:
            place.core?.reading.accessors.insert(place)
            self = .dictionary(Map(place: place))
        default: self.init(scalar: value)
        }
    }

    public func _stored(in owner: ObjectBase) -> _StoredValue {
        switch self {
        case .none: .null
        case .int(let value): value._stored(in: owner)
        case .bool(let value): value._stored(in: owner)
        case .float(let value): value._stored(in: owner)
        case .double(let value): value._stored(in: owner)
        case .string(let value): value._stored(in: owner)
        case .data(let value): value._stored(in: owner)
        case .date(let value): value._stored(in: owner)
        case .objectId(let value): value._stored(in: owner)
        case .decimal128(let value): value._stored(in: owner)
        case .uuid(let value): value._stored(in: owner)
        case .object(let value): .boxed(_BoxedValue(.link(type: value.model.name, key: value._stored(in: owner).value)))
        case .dictionary(let value): value._stored(in: owner)
        case .list(let value): value._stored(in: owner)
        }
    }

    public func _attach(to owner: ObjectBase, slot: Int32) {
        let place = _Place(owner: owner, slot: Int(slot))
        place.takeOver(from: collectionPlace)
        _attach(at: place)
    }

    public func _attach(at place: _Place) {
        switch self {
        case .list(let list) where list.place == nil:
            place.core?.reading.accessors.insert(place)
            list._attach(at: place)
        case .dictionary(let map) where map.place == nil:
            place.core?.reading.accessors.insert(place)
            map._attach(at: place)
        default: break
        }
    }

    private var collectionPlace: _Place? { listValue?.place ?? dictionaryValue?.place }

    public static var _hasPlace: Bool { true }
    public static func _default() -> AnyRealmValue { .none }

    public static func _coerce(_ value: Any) -> AnyRealmValue? {
        switch plainNumber(value) {
        case let value as AnyRealmValue: value.unshared
        case _ where isNil(value): AnyRealmValue.none
        case let value as Bool where type(of: value as Any) == Bool.self: .bool(value)
        case let value as any BinaryInteger: Int(exactly: value).map { .int($0) }
        case let value as Float: .float(value)
        case let value as Double: .double(value)
        case let value as String: .string(value)
        case let value as Data: .data(value)
        case let value as Date: .date(value)
        case let value as ObjectId: .objectId(value)
        case let value as Decimal128: .decimal128(value)
        case let value as UUID: .uuid(value)
        case let value as Object: .object(value)
        case let value as any PersistableEnum: value._untyped.flatMap { _coerce($0) }
        case let value as [String: Any]: Map<String, AnyRealmValue>._coerce(value).map { .dictionary($0) }
        case let value as Map<String, AnyRealmValue>: Map<String, AnyRealmValue>._coerce(value).map { .dictionary($0) }
        case let value as any Sequence: List<AnyRealmValue>._coerce(value).map { .list($0) }
        default: nil
        }
    }

    /// The value with managed collections copied.
    private var unshared: AnyRealmValue {
        switch self {
        case .list(let list) where list.place != nil: List._coerce(list).map { .list($0) } ?? .none
        case .dictionary(let map) where map.place != nil: Map._coerce(map).map { .dictionary($0) } ?? .none
        default: self
        }
    }

    public var _untyped: Any? {
        switch self {
        case .none: nil
        case .int(let value): value
        case .bool(let value): value
        case .float(let value): value
        case .double(let value): value
        case .string(let value): value
        case .data(let value): value
        case .date(let value): value
        case .object(let value): value
        case .objectId(let value): value
        case .decimal128(let value): value
        case .uuid(let value): value
        case .dictionary(let value): value
        case .list(let value): value
        }
    }

    public static var _kind: _PropertyKind { _PropertyKind(type: .mixed, isOptional: true) }
}
