public import Foundation

extension AnyBSON {
    public var isNull: Bool { self == .null }
    public var boolValue: Bool? { if case .bool(let v) = self { v } else { nil } }
    public var int32Value: Int32? { if case .int32(let v) = self { v } else { nil } }
    public var int64Value: Int64? { if case .int64(let v) = self { v } else { nil } }
    public var doubleValue: Double? { if case .double(let v) = self { v } else { nil } }
    public var stringValue: String? { if case .string(let v) = self { v } else { nil } }
    public var arrayValue: [AnyBSON?]? { if case .array(let v) = self { v } else { nil } }
    public var documentValue: Document? { if case .document(let v) = self { v } else { nil } }
    public var objectIdValue: ObjectId? { if case .objectId(let v) = self { v } else { nil } }
    public var dateValue: Date? { if case .datetime(let v) = self { v } else { nil } }
    public var uuidValue: UUID? { if case .uuid(let v) = self { v } else { nil } }
    public var binaryValue: Data? { if case .binary(let v) = self { v } else { nil } }
    public var regexValue: NSRegularExpression? { if case .regex(let v) = self { v } else { nil } }
    public var timestampValue: Date? { if case .timestamp(let v) = self { v } else { nil } }
    public var decimal128Value: Decimal128? { if case .decimal128(let v) = self { v } else { nil } }

    /// The value of an `int32`, an `int64` or a `double` without fraction; nil if it does not fit.
    public func asInt() -> Int? { asInt64().flatMap { Int(exactly: $0) } }
    /// The value of an `int32`, an `int64` or a `double` without fraction; nil if it does not fit.
    public func asInt32() -> Int32? { asInt64().flatMap { Int32(exactly: $0) } }

    /// The value of an `int32`, an `int64` or a `double` without fraction; nil if it does not fit.
    public func asInt64() -> Int64? {
        switch self {
        case .int32(let v): Int64(v)
        case .int64(let v): v
        case .double(let v): Int64(exactly: v)
        default: nil
        }
    }

    /// The value of any number except a `decimal128`. Integers beyond 2⁵³ are rounded.
    public func asDouble() -> Double? { doubleValue ?? asInt64().map { Double($0) } }

    /// The value of any number. A `double` is converted by its shortest digits.
    public func asDecimal128() -> Decimal128? {
        if let value = decimal128Value { return value }
        if let value = doubleValue { return Decimal128(value: value) }
        return asInt64().map { Decimal128(value: $0) }
    }
}

extension AnyBSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .int64(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(arrayLiteral elements: AnyBSON?...) { self = .array(elements) }
    /// The last of equal keys wins.
    public init(dictionaryLiteral elements: (String, AnyBSON?)...) {
        self = .document(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}
