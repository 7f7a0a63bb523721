public import Foundation

/// A type that documents can contain: numbers, texts, data, dates, identifiers, regular expressions, lists and documents.
public protocol BSON: Equatable {
    /// The value as a document's value.
    var _bson: AnyBSON { get }
    /// Returns a document's value if it has this type, without conversion.
    static func _value(of bson: AnyBSON) -> Self?
}

extension AnyBSON {
    /// Wraps a value for a document.
    public init(_ value: some BSON) { self = value._bson }

    /// Returns the value if it has the requested type. An `Int` is an `int64`; nothing is converted.
    public func value<T: BSON>() -> T? { T._value(of: self) }

    /// The value as a plain Swift value: integers as `Int`, lists as `[Any]`, documents as `[String: Any]`, null as `NSNull`.
    var plain: Any {
        switch self {
        case .null: NSNull()
        case .bool(let v): v
        case .int32(let v): Int(v)
        case .int64(let v): Int(exactly: v) ?? v
        case .double(let v): v
        case .string(let v): v
        case .array(let v): v.map { ($0 ?? .null).plain }
        case .document(let v): v.mapValues { ($0 ?? .null).plain }
        case .objectId(let v): v
        case .datetime(let v): v
        case .uuid(let v): v
        case .binary(let v): v
        case .decimal128(let v): v
        case .regex(let v): v
        case .timestamp(let v): v
        case .minKey: MinKey()
        case .maxKey: MaxKey()
        }
    }
}

extension AnyBSON: BSON {
    public var _bson: AnyBSON { self }
    public static func _value(of bson: AnyBSON) -> AnyBSON? { bson }
}

extension Int: BSON {
    public var _bson: AnyBSON { .int64(Int64(self)) }
    public static func _value(of bson: AnyBSON) -> Int? { bson.int64Value.flatMap { Int(exactly: $0) } }
}

extension Int32: BSON {
    public var _bson: AnyBSON { .int32(self) }
    public static func _value(of bson: AnyBSON) -> Int32? { bson.int32Value }
}

extension Int64: BSON {
    public var _bson: AnyBSON { .int64(self) }
    public static func _value(of bson: AnyBSON) -> Int64? { bson.int64Value }
}

extension Bool: BSON {
    public var _bson: AnyBSON { .bool(self) }
    public static func _value(of bson: AnyBSON) -> Bool? { bson.boolValue }
}

extension Double: BSON {
    public var _bson: AnyBSON { .double(self) }
    public static func _value(of bson: AnyBSON) -> Double? { bson.doubleValue }
}

extension String: BSON {
    public var _bson: AnyBSON { .string(self) }
    public static func _value(of bson: AnyBSON) -> String? { bson.stringValue }
}

extension Data: BSON {
    public var _bson: AnyBSON { .binary(self) }
    public static func _value(of bson: AnyBSON) -> Data? { bson.binaryValue }
}

extension Date: BSON {
    public var _bson: AnyBSON { .datetime(self) }
    public static func _value(of bson: AnyBSON) -> Date? { bson.dateValue }
}

extension UUID: BSON {
    public var _bson: AnyBSON { .uuid(self) }
    public static func _value(of bson: AnyBSON) -> UUID? { bson.uuidValue }
}

extension ObjectId: BSON {
    public var _bson: AnyBSON { .objectId(self) }
    public static func _value(of bson: AnyBSON) -> ObjectId? { bson.objectIdValue }
}

extension Decimal128: BSON {
    public var _bson: AnyBSON { .decimal128(self) }
    public static func _value(of bson: AnyBSON) -> Decimal128? { bson.decimal128Value }
}

extension NSRegularExpression: BSON {
    public var _bson: AnyBSON { .regex(self) }
    public static func _value(of bson: AnyBSON) -> Self? { bson.regexValue as? Self }
}

extension NSNull: BSON {
    public var _bson: AnyBSON { .null }
    public static func _value(of bson: AnyBSON) -> Self? { bson.isNull ? NSNull() as? Self : nil }
}

extension MinKey: BSON {
    public var _bson: AnyBSON { .minKey }
    public static func _value(of bson: AnyBSON) -> MinKey? { bson == .minKey ? MinKey() : nil }
}

extension MaxKey: BSON {
    public var _bson: AnyBSON { .maxKey }
    public static func _value(of bson: AnyBSON) -> MaxKey? { bson == .maxKey ? MaxKey() : nil }
}

extension [AnyBSON?]: BSON {
    public var _bson: AnyBSON { .array(self) }
    public static func _value(of bson: AnyBSON) -> [AnyBSON?]? { bson.arrayValue }
}

extension Document: BSON {
    public var _bson: AnyBSON { .document(self) }
    public static func _value(of bson: AnyBSON) -> Document? { bson.documentValue }
}
