import SluicePluginKit

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
        switch (key, content) {
        case ("$oid", .string(let text)):
            guard let id = RuleValue(objectIdText: text) else { return nil }
            self = id
        case ("$uuid", .string(let text)):
            guard let id = RuleValue(uuidText: text) else { return nil }
            self = id
        case ("$numberInt", .string(let text)), ("$numberLong", .string(let text)):
            guard let number = Int64(text) else { return nil }
            self = .int(number)
        case ("$numberDouble", .string(let text)):
            guard let number = Double(text) else { return nil }
            self = .double(number)
        case ("$numberDecimal", .string(let text)):
            guard DecimalDigits(text) != nil else { return nil }
            self = .decimal(text)
        case ("$date", _):
            guard let date = DateText.read(content) else { return nil }
            self = .date(seconds: date.seconds, nanoseconds: date.nanoseconds)
        case ("$binary", _):
            guard let base64 = content["base64"]?.string, Base64Text.isValid(base64) else { return nil }
            self = .binary(base64)
        default: return nil
        }
    }

    init?(objectIdText text: String) {
        let digits = text.lowercased()
        if digits.utf8.count == 24, digits.utf8.allSatisfy(\.isHexDigit) {
            self = .objectId(digits)
        } else if text.utf8.count == 12 {
            let hex = Array("0123456789abcdef")
            self = .objectId(String(text.utf8.flatMap { [hex[Int($0 >> 4)], hex[Int($0 & 15)]] }))
        } else {
            return nil
        }
    }

    init?(uuidText text: String) {
        let digits = text.lowercased()
        let parts = digits.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12], parts.allSatisfy({ $0.utf8.allSatisfy(\.isHexDigit) }) else { return nil }
        self = .uuid(digits)
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

extension UInt8 {
    var isHexDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }
}

/// Base64 text.
enum Base64Text {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let group = rest.prefix(3)
            rest = rest.dropFirst(3)
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                text.append(index <= group.count ? alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func isValid(_ text: String) -> Bool {
        let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return text.utf8.count.isMultiple(of: 4) && padding <= 2 && text.utf8.dropLast(padding).allSatisfy(alphabet.contains)
    }
}
