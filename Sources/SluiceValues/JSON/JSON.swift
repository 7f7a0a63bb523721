/// A JSON text as a tree that keeps the order of members, the place of each, and integers as integers. Configuration needs all three.
///
/// The only public type of the module: plugins see it as `PluginValue`.
public enum JSON: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with a fraction or exponent, or an integer beyond 64 bits.
    case double(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    public struct Member: Hashable, Sendable {
        public var key: String
        public var value: JSON
        /// The place of the key in the text, from 1, or 0 if the tree was not parsed. Not part of equality.
        public var line: Int
        public var column: Int

        public init(_ key: String, _ value: JSON, line: Int = 0, column: Int = 0) {
            self.key = key
            self.value = value
            self.line = line
            self.column = column
        }

        public static func == (lhs: Member, rhs: Member) -> Bool { lhs.key.hasSameBytes(as: rhs.key) && lhs.value == rhs.value }
        public func hash(into hasher: inout Hasher) {
            key.hashBytes(into: &hasher)
            hasher.combine(value)
        }
    }

    /// The member of an object, or nil for another kind of value or a missing key. The last of equal keys counts.
    public subscript(_ key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.key.hasSameBytes(as: key) }?.value
    }
}

// Texts and keys are equal if their bytes are, as in PostgreSQL, because rules decide permissions by custom data.
extension JSON: Hashable {
    public static func == (lhs: JSON, rhs: JSON) -> Bool {
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

    public func hash(into hasher: inout Hasher) {
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

// Not by nil: `value == nil` on an optional value would then test for a JSON null.
extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) { self = .object(elements.map { Member($0.0, $0.1) }) }

    /// The value if it is of this type, otherwise nil. The following accessors do the same.
    public var string: String? { if case .string(let v) = self { v } else { nil } }
    public var bool: Bool? { if case .bool(let v) = self { v } else { nil } }
    public var int: Int64? { if case .int(let v) = self { v } else { nil } }
    public var array: [JSON]? { if case .array(let v) = self { v } else { nil } }
    public var members: [Member]? { if case .object(let v) = self { v } else { nil } }
}

/// A syntax error in a JSON text and its place.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public var line: Int
    /// The column in Unicode scalars, from 1.
    public var column: Int
    /// Part of a sentence: "expected a value, found '}'".
    public var problem: String
    public var description: String { "line \(line), column \(column): \(problem)" }
}
