/// JSON for plugins: the arguments and answers of hooks, and the contents of files in the app directory.
///
/// Objects keep the order of their members and, if parsed, the line of each key, so that a plugin can report the place of an error.
/// Integers within 64 bits remain integers.
public enum PluginValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([PluginValue])
    case object([Member])

    /// One member of an object.
    public struct Member: Sendable, Hashable {
        public var key: String
        public var value: PluginValue
        /// The line of the key in the parsed text, from 1, or 0 for a value created in code. Not part of equality.
        public var line: Int

        public init(_ key: String, _ value: PluginValue, line: Int = 0) {
            self.key = key
            self.value = value
            self.line = line
        }

        public static func == (lhs: Member, rhs: Member) -> Bool { ByteText(lhs.key) == ByteText(rhs.key) && lhs.value == rhs.value }
        public func hash(into hasher: inout Hasher) {
            hasher.combine(ByteText(key))
            hasher.combine(value)
        }
    }
}

// Texts and keys are equal if their bytes are, as in PostgreSQL and in queries.
extension PluginValue: Hashable {
    public static func == (lhs: PluginValue, rhs: PluginValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let l), .bool(let r)): l == r
        case (.int(let l), .int(let r)): l == r
        case (.double(let l), .double(let r)): l == r
        case (.string(let l), .string(let r)): ByteText(l) == ByteText(r)
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
        case .string(let v): hasher.combine(ByteText(v))
        case .array(let v): hasher.combine(v)
        case .object(let v): hasher.combine(v)
        }
    }
}

extension PluginValue {
    /// The member of an object, or nil for another kind of value or a missing key. The last of equal keys counts.
    public subscript(_ key: String) -> PluginValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { ByteText($0.key) == ByteText(key) }?.value
    }

    public var isNull: Bool { self == .null }
    /// The value if it is of this type, otherwise nil. The following accessors do the same.
    public var bool: Bool? { if case .bool(let v) = self { v } else { nil } }
    public var int: Int64? { if case .int(let v) = self { v } else { nil } }
    public var string: String? { if case .string(let v) = self { v } else { nil } }
    public var array: [PluginValue]? { if case .array(let v) = self { v } else { nil } }
    public var members: [Member]? { if case .object(let v) = self { v } else { nil } }

    /// Any number, in plain JSON or in a form of extended JSON (`$numberInt`, `$numberLong`, `$numberDouble`).
    public var number: Double? {
        switch self {
        case .int(let v): return Double(v)
        case .double(let v): return v
        case .object(let members) where members.count == 1:
            guard ["$numberInt", "$numberLong", "$numberDouble"].contains(members[0].key) else { return nil }
            guard let text = members[0].value.string else { return members[0].value.number }
            return Double(text)
        default: return nil
        }
    }

    /// Sets a member of an object, at its place or at the end. Has no effect on other kinds of value.
    public mutating func set(_ key: String, to value: PluginValue) {
        guard case .object(var members) = self else { return }
        if let index = members.lastIndex(where: { ByteText($0.key) == ByteText(key) }) {
            members[index].value = value
        } else {
            members.append(Member(key, value))
        }
        self = .object(members)
    }
}

// Not by nil: `value == nil` on an optional value would then test for a JSON null.
extension PluginValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(arrayLiteral elements: PluginValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, PluginValue)...) { self = .object(elements.map { Member($0.0, $0.1) }) }
}
