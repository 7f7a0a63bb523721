import SluiceCore
import SluiceValues

/// A constant of a query, from a literal or an argument, before conversion to a property's type.
enum QueryConstant: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with the digits from the text, which a decimal property uses unrounded.
    case double(Double, text: String)
    case float(Float, text: String)
    case decimal(Decimal128)
    case string(String)
    case binary([UInt8])
    /// `B64"…"` that is not UTF-8: bytes in place of a string.
    case bytes([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
    case link(type: String, key: Value)
    case container(Value)

    init(_ literal: Literal) {
        switch literal {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .real(let text): self = .double(Double(text) ?? .nan, text: text)
        case .float(let text): self = .float(Float(text) ?? .nan, text: text)
        case .infinity(let negative): self = .double(negative ? -.infinity : .infinity, text: negative ? "-inf" : "inf")
        case .nan: self = .double(.nan, text: "nan")
        case .string(let value): self = .string(value)
        case .bytes(let value): self = .bytes(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        }
    }

    init(argument value: Value) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .float(let value): self = .float(value, text: "\(value)")
        case .double(let value): self = .double(value, text: "\(value)")
        case .decimal(let value): self = .decimal(value)
        case .string(let value): self = .string(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        case .link(let type, let key): self = .link(type: type, key: key)
        case .list, .dictionary: self = .container(value)
        }
    }

    /// The value for a mixed property or a key.
    var value: Value {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .int(value)
        case .double(let value, _): .double(value == 0 ? 0 : value)
        case .float(let value, _): .float(value == 0 ? 0 : value)
        case .decimal(let value): .decimal(value.normalized)
        case .string(let value): .string(value)
        case .binary(let value), .bytes(let value): .binary(value)
        case .timestamp(let value): .timestamp(value)
        case .objectId(let value): .objectId(value)
        case .uuid(let value): .uuid(value)
        case .link(let type, let key): .link(type: type, key: key)
        case .container(let value): value
        }
    }
}
