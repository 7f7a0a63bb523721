import SluicePluginKit
import SluiceValues

/// A value as rules compare it: JSON with the types that extended JSON adds.
enum RuleValue {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    /// The digits as written.
    case decimal(String)
    case string(String)
    /// 24 hexadecimal digits in lower case.
    case objectId(String)
    /// The 8-4-4-4-12 form in lower case.
    case uuid(String)
    case date(seconds: Int64, nanoseconds: Int64)
    /// The bytes in base64.
    case binary(String)
    case list([RuleValue])
    case object([ByteText: RuleValue])

    /// Reads extended JSON. An object with an unknown `$` key remains an object.
    init(_ value: PluginValue) {
        switch value {
        case .null: self = .null
        case .bool(let v): self = .bool(v)
        case .int(let v): self = .int(v)
        case .double(let v): self = .double(v)
        case .string(let v): self = .string(v)
        case .array(let v): self = .list(v.map { RuleValue($0) })
        case .object(let members):
            self =
                RuleValue(extended: value)
                ?? .object(Dictionary(members.map { (ByteText($0.key), RuleValue($0.value)) }, uniquingKeysWith: { _, last in last }))
        }
    }

    /// Reads one of extended JSON's objects with a `$` key, or returns nil.
    init?(extended value: PluginValue) {
        guard let members = value.members, members.count == 1, let key = members.first?.key, let content = members.first?.value else {
            return nil
        }
        // A decimal of a rule may have more digits than one of the store. Comparisons round it, as queries do.
        if key == "$numberDecimal" {
            guard let digits = content.string, Decimal128(ruleDigits: digits) != nil else { return nil }
            self = .decimal(digits)
            return
        }
        switch ExtendedForm(value) {
        case .int(let number): self = .int(number)
        case .double(let number): self = .double(number)
        case .binary(let bytes): self = .binary(Base64.encode(bytes))
        case .timestamp(let time): self = RuleValue(time)
        case .objectId(let id): self = .objectId(id.description)
        case .uuid(let id): self = .uuid(id.description)
        case .decimal, .link, nil: return nil
        }
    }

    init(_ time: Timestamp) { self = .date(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds)) }

    init?(objectIdText text: String) {
        if let id = ObjectIdentifierBytes(hex: text) {
            self = .objectId(id.description)
        } else if text.utf8.count == 12 {
            self = .objectId(Hex.encode(text.utf8))
        } else {
            return nil
        }
    }

    init?(uuidText text: String) {
        guard let id = UUIDBytes(text) else { return nil }
        self = .uuid(id.description)
    }

    /// `true` if two values are equal. Numbers compare by value, and NaN equals nothing.
    func equals(_ other: RuleValue) -> Bool {
        order(of: other).map { $0 == .equal } ?? (self == other)
    }

    /// `true` if this is the value, or an array that contains it.
    func matches(_ other: RuleValue) -> Bool {
        if equals(other) { return true }
        guard case .list(let elements) = self else { return false }
        return elements.contains { $0.equals(other) }
    }

    /// `true` if this is less, or equal if `orEqual`. Nil if the two have no order. NaN is not less than, greater than or equal to
    /// anything.
    func isLess(than other: RuleValue, orEqual: Bool = false) -> Bool? {
        if let order = order(of: other) { return order == .less || orEqual && order == .equal }
        switch (self, other) {
        case (.string(let l), .string(let r)), (.objectId(let l), .objectId(let r)), (.uuid(let l), .uuid(let r)):
            return ByteText(l) == ByteText(r) ? orEqual : l.utf8.lexicographicallyPrecedes(r.utf8)
        case (.date(let ls, let ln), .date(let rs, let rn)): return (ls, ln) == (rs, rn) ? orEqual : (ls, ln) < (rs, rn)
        default: return nil
        }
    }

    /// The type's name for messages.
    var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .int, .double, .decimal: "a number"
        case .string: "a string"
        case .objectId: "an ObjectId"
        case .uuid: "a UUID"
        case .date: "a date"
        case .binary: "binary data"
        case .list: "a list"
        case .object: "an object"
        }
    }
}

// By bytes, like PostgreSQL with collation "C" and the query of the same expression.
extension RuleValue: Hashable {
    static func == (lhs: RuleValue, rhs: RuleValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let l), .bool(let r)): l == r
        case (.int(let l), .int(let r)): l == r
        case (.double(let l), .double(let r)): l == r
        case (.decimal(let l), .decimal(let r)), (.string(let l), .string(let r)), (.objectId(let l), .objectId(let r)),
            (.uuid(let l), .uuid(let r)), (.binary(let l), .binary(let r)):
            ByteText(l) == ByteText(r)
        case (.date(let ls, let ln), .date(let rs, let rn)): ls == rs && ln == rn
        case (.list(let l), .list(let r)): l == r
        case (.object(let l), .object(let r)): l == r
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let v): hasher.combine(v)
        case .int(let v): hasher.combine(v)
        case .double(let v): hasher.combine(v)
        case .decimal(let v), .string(let v), .objectId(let v), .uuid(let v), .binary(let v): hasher.combine(ByteText(v))
        case .date(let seconds, let nanoseconds):
            hasher.combine(seconds)
            hasher.combine(nanoseconds)
        case .list(let v): hasher.combine(v)
        case .object(let v): hasher.combine(v)
        }
    }
}
