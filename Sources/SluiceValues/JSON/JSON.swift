/// A JSON text as a tree that keeps the order of members, the place of each, and integers as integers. Configuration needs all three.
package enum JSON: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with a fraction or exponent, or an integer beyond 64 bits.
    case double(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    package struct Member: Hashable, Sendable {
        package var key: String
        package var value: JSON
        /// The place of the key in the text, from 1, or 0 if the tree was not parsed. Not part of equality.
        package var line: Int
        package var column: Int

        package init(_ key: String, _ value: JSON, line: Int = 0, column: Int = 0) {
            self.key = key
            self.value = value
            self.line = line
            self.column = column
        }

        package static func == (lhs: Member, rhs: Member) -> Bool { lhs.key.hasSameBytes(as: rhs.key) && lhs.value == rhs.value }
        package func hash(into hasher: inout Hasher) {
            key.hashBytes(into: &hasher)
            hasher.combine(value)
        }
    }

    /// The member of an object, or nil for another kind of value or a missing key. The last of equal keys counts.
    package subscript(_ key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.key.hasSameBytes(as: key) }?.value
    }
}

// Texts and keys are equal if their bytes are, as in PostgreSQL, because rules decide permissions by custom data.
extension JSON: Hashable {
    package static func == (lhs: JSON, rhs: JSON) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let l), .bool(let r)): l == r
        case (.int(let l), .int(let r)): l == r
        case (.double(let l), .double(let r)): l == r
        case (.string(let l), .string(let r)): l.hasSameBytes(as: r)
        case (.array(let l), .array(let r)): l == r
        case (.object(let l), .object(let r)): l == r
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let v): hasher.combine(v)
        case .int(let v): hasher.combine(v)
        case .double(let v): hasher.combine(v)
        case .string(let v): v.hashBytes(into: &hasher)
        case .array(let v): hasher.combine(v)
        case .object(let v): hasher.combine(v)
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int64) { self = .int(value) }
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSON)...) { self = .object(elements.map { Member($0.0, $0.1) }) }

    package var string: String? { if case .string(let v) = self { v } else { nil } }
    package var bool: Bool? { if case .bool(let v) = self { v } else { nil } }
    package var int: Int64? { if case .int(let v) = self { v } else { nil } }
    package var array: [JSON]? { if case .array(let v) = self { v } else { nil } }
    package var members: [Member]? { if case .object(let v) = self { v } else { nil } }
}
