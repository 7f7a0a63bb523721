package import SluiceCore

/// A property's value in the row cache of an object.
///
/// Public because inlined accessors refer to it; not for apps.
@frozen public enum _StoredValue {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Float)
    case double(Double)
    case string(String)
    /// All other types.
    case boxed(_BoxedValue)
}

/// A value without a case of its own in `_StoredValue`.
public final class _BoxedValue: Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}

extension _StoredValue {
    package init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .bool(let v): self = .bool(v)
        case .int(let v): self = .int(v)
        case .float(let v): self = .float(v)
        case .double(let v): self = .double(v)
        case .string(let v): self = .string(v)
        default: self = .boxed(_BoxedValue(value))
        }
    }

    package var value: Value {
        switch self {
        case .null: .null
        case .bool(let v): .bool(v)
        case .int(let v): .int(v)
        case .float(let v): .float(v)
        case .double(let v): .double(v)
        case .string(let v): .string(v)
        case .boxed(let box): box.value
        }
    }
}
