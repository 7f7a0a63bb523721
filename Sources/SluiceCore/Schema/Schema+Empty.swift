import SluiceValues

extension Property {
    /// The value of a new object without an explicit one: null if permitted, an empty collection, otherwise the type's zero.
    package var emptyValue: Value {
        switch collection {
        case .list, .set: return .list([])
        case .dictionary: return .dictionary([:])
        case .none: return isRequired ? type.zero : .null
        }
    }
}

extension PropertyType {
    fileprivate var zero: Value {
        switch self {
        case .bool: .bool(false)
        case .int: .int(0)
        case .float: .float(0)
        case .double: .double(0)
        case .decimal: .decimal(.zero)
        case .string: .string("")
        case .binary: .binary([])
        case .timestamp: .timestamp(Timestamp(seconds: 0))
        case .objectId: .objectId(ObjectIdentifierBytes(high: 0, low: 0))
        case .uuid: .uuid(UUIDBytes(high: 0, low: 0))
        case .mixed, .link, .embedded: .null
        }
    }
}
