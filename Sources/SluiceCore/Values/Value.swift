package import SluiceValues

/// One property value, in the owning form for code off the hot path. The hot path reads `Cell`s in place, see `RowView`.
///
/// Equality compares representations, as change detection needs: NaN equals NaN, and -0 differs from 0. SluiceQuery has the query
/// language's own comparison.
package enum Value: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Float)
    case double(Double)
    case decimal(Decimal128)
    case string(String)
    case binary([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
    /// A list or set of scalars. The store keeps sets sorted, so that equal sets are equal here.
    case list([Value])
    /// A dictionary, an embedded object, or a nested value of a mixed property.
    case dictionary([String: Value])
    /// A link inside a mixed property: the class and the key of its target. A typed link is only its target's key.
    indirect case link(type: String, key: Value)
}

extension Value: Hashable {
    package static func == (lhs: Value, rhs: Value) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let l), .bool(let r)): l == r
        case (.int(let l), .int(let r)): l == r
        case (.float(let l), .float(let r)): l.bitPattern == r.bitPattern
        case (.double(let l), .double(let r)): l.bitPattern == r.bitPattern
        case (.decimal(let l), .decimal(let r)): l == r
        case (.string(let l), .string(let r)): l.utf8.elementsEqual(r.utf8)
        case (.binary(let l), .binary(let r)): l == r
        case (.timestamp(let l), .timestamp(let r)): l == r
        case (.objectId(let l), .objectId(let r)): l == r
        case (.uuid(let l), .uuid(let r)): l == r
        case (.list(let l), .list(let r)): l == r
        case (.dictionary(let l), .dictionary(let r)): haveSameMembers(l, r)
        case (.link(let lt, let lk), .link(let rt, let rk)): lt.hasSameBytes(as: rt) && lk == rk
        default: false
        }
    }

    /// `true` if keys have equal bytes and equal values. A `Dictionary` also finds keys that are only canonically equivalent.
    private static func haveSameMembers(_ left: [String: Value], _ right: [String: Value]) -> Bool {
        left.count == right.count
            && left.allSatisfy { key, value in
                guard let place = right.index(forKey: key) else { return false }
                return right[place].key.hasSameBytes(as: key) && right[place].value == value
            }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let v): hasher.combine(v)
        case .int(let v): hasher.combine(v)
        case .float(let v): hasher.combine(v.bitPattern)
        case .double(let v): hasher.combine(v.bitPattern)
        case .decimal(let v): hasher.combine(v)
        case .string(let v): for byte in v.utf8 { hasher.combine(byte) }
        case .binary(let v): hasher.combine(v)
        case .timestamp(let v): hasher.combine(v)
        case .objectId(let v): hasher.combine(v)
        case .uuid(let v): hasher.combine(v)
        case .list(let v): hasher.combine(v)
        case .dictionary(let v): hasher.combine(v)
        case .link(let type, let key):
            hasher.combine(type)
            hasher.combine(key)
        }
    }
}

extension Value {
    package var isNull: Bool { if case .null = self { true } else { false } }

    /// The type's name for error messages.
    package var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "bool"
        case .int: "int"
        case .float: "float"
        case .double: "double"
        case .decimal: "decimal"
        case .string: "string"
        case .binary: "binary"
        case .timestamp: "date"
        case .objectId: "objectId"
        case .uuid: "uuid"
        case .list: "list"
        case .dictionary: "dictionary"
        case .link: "link"
        }
    }
}
