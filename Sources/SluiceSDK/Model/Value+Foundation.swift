import Foundation
import SluiceCore

extension Value {
    /// The cases of `plain` that are Foundation types.
    var wide: Any? {
        switch self {
        case .binary(let v): Data(v)
        case .timestamp(let v): Date(v)
        case .uuid(let v): UUID(v)
        default: nil
        }
    }

    /// The value of something untyped that an app passes as an argument; nil for what no property can hold.
    init?(any argument: Any?) {
        guard let argument = argument.map(plainNumber) else {
            self = .null
            return
        }
        switch argument {
        case is NSNull: self = .null
        case let v as Bool where type(of: argument) == Bool.self: self = .bool(v)
        case let v as any BinaryInteger: self = .int(Int64(clamping: v))
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
}

extension Array where Element == Any? {
    fileprivate init(_ sequence: some Sequence) { self = sequence.map { $0 as Any? } }
}

/// A number object, as JSON's numbers are, as the Swift value that it holds; everything else as it is. Casts would make a truth value a
/// number, and a whole number a truth value or a float.
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
