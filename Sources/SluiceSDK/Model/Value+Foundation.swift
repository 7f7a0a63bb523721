import Foundation
import SluiceCore
import SluiceValues

extension Value {
    /// The cases of `plain` that are Foundation types; nil for others.
    var wide: Any? {
        switch self {
        case .binary(let v): Data(v)
        case .timestamp(let v): Date(v)
        case .uuid(let v): UUID(v)
        default: nil
        }
    }

    /// Converts an app's untyped argument; nil if no property can hold it. An object becomes its primary key.
    /// An integer beyond 64 signed bits becomes a decimal.
    init?(any argument: Any?) {
        guard let argument = argument.map(plainNumber) else {
            self = .null
            return
        }
        switch argument {
        case is NSNull: self = .null
        case let v as Bool where type(of: argument) == Bool.self: self = .bool(v)
        case let v as any BinaryInteger: self = Value.integer(v)
        case let v as Double: self = .double(v)
        case let v as Float: self = .float(v)
        case let v as String: self = .string(v)
        case let v as Date: self = .timestamp(v.timestamp)
        case let v as Data: self = .binary(Array(v))
        case let v as UUID: self = v._stored(in: ObjectBase()).value
        case let v as ObjectId: self = .objectId(v.bytes)
        case let v as Decimal128: self = .decimal(v.bits)
        case let v as Object: self = v.model.primaryKey(of: v)
        case let v as any PersistableEnum: self = v._stored(in: ObjectBase()).value
        case let v as any _CustomPersistable: self = v._stored(in: ObjectBase()).value
        case let v as AnyRealmValue: self = v._stored(in: ObjectBase()).value
        case let v as [Any?]:
            let elements = v.map { Value(any: $0) }
            guard !elements.contains(where: { $0 == nil }) else { return nil }
            self = .list(elements.compactMap(\.self))
        case let v as any Sequence:
            guard let list = Value(any: Array(v) as [Any?]) else { return nil }
            self = list
        case _ where isNil(argument): self = .null
        default: return nil
        }
    }

    /// Beyond 64 signed bits it is a decimal, which no integer property equals, as with such a number in a query's text.
    private static func integer(_ value: some BinaryInteger) -> Value {
        if let exact = Int64(exactly: value) { return .int(exact) }
        return SluiceValues.Decimal128(rounding: "\(value)").map { .decimal($0) } ?? .double(Double(value))
    }
}

extension Array where Element == Any? {
    fileprivate init(_ sequence: some Sequence) { self = sequence.map { $0 as Any? } }
}

/// Returns a number object's Swift value, as in JSON; anything else unchanged.
/// A cast would turn a Boolean into a number, and an integer into a Boolean or a float.
func plainNumber(_ value: Any) -> Any {
    guard type(of: value) is NSNumber.Type, let number = value as? NSNumber else { return value }
    if type(of: number) == type(of: NSNumber(value: true)) { return number.boolValue }
    return switch String(cString: number.objCType) {
    case "d": number.doubleValue
    case "f": number.floatValue
    case "Q": number.uint64Value
    default: number.intValue
    }
}
