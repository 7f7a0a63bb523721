import SluicePluginKit
import SluiceValues

/// Values and names in the query language.
enum QueryLiteral {
    /// Returns the literal for a comparison with a property, or nil if the two have no common type.
    static func text(_ value: RuleValue, for property: PluginProperty) -> String? {
        if case .null = value { return "NULL" }
        if let link = LinkKey(property) {
            return text(value, for: PluginProperty(type: link.type)).map { "obj(\(quoted(link.target)), \($0))" }
        }
        switch (property.type, value) {
        // For a mixed property the language reads digits as a double.
        case ("mixed", .decimal(let digits)) where RuleValue.double(Double(digits) ?? .nan).order(of: value) != .equal: return nil
        case ("int", .int), ("int", .double), ("float", .int), ("float", .double), ("double", .int), ("double", .double),
            ("decimal", .int), ("decimal", .double), ("decimal", .decimal), ("string", .string), ("bool", .bool),
            ("objectId", .objectId), ("uuid", .uuid), ("date", .date), ("binary", .binary), ("mixed", _):
            return text(value)
        default: return nil
        }
    }

    private static func text(_ value: RuleValue) -> String? {
        switch value {
        case .null: "NULL"
        case .bool(let v): v ? "true" : "false"
        case .int(let v): String(v)
        case .double(let v): v.isFinite ? "\(v)" : nil
        case .decimal(let v): v.utf8.allSatisfy({ $0.isNumberPart }) ? v : nil
        case .string(let v): quoted(v)
        case .objectId(let v): "oid(\(v))"
        case .uuid(let v): "uuid(\(v))"
        case .date(let seconds, let nanoseconds): "T\(seconds):\(nanoseconds)"
        case .binary(let v): "binary(B64\"\(v)\")"
        case .list, .object: nil
        }
    }

    /// Returns a string literal. The language has no escapes, so text that would need one is base64.
    static func quoted(_ text: String) -> String {
        text.utf8.allSatisfy(isPlain) ? "\"\(text)\"" : "B64\"\(Base64.encode(Array(text.utf8)))\""
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"), 0..<0x20, 0x7F: false
        default: true
        }
    }

    /// Words that the query language does not accept as a property's name.
    private static let reserved: Set<String> = [
        "and", "asc", "ascending", "beginswith", "between", "contains", "desc", "descending", "distinct", "endswith",
        "falsepredicate", "inf", "infinity", "like", "limit", "nan", "nil", "null", "or", "sort", "subquery", "truepredicate",
    ]
    private static let reservedAsSpelt: Set<String> = [
        "ALL", "ANY", "B64", "FALSE", "IN", "NONE", "NOT", "SOME", "TRUE", "all", "any", "false", "in", "none", "not", "oid", "some",
        "true", "uuid",
    ]

    /// Returns a property's name in a query, or nil if the language cannot express it.
    static func name(_ name: String) -> String? {
        guard !reserved.contains(name.lowercased()), !reservedAsSpelt.contains(name), let first = name.utf8.first,
            first.isNameStart, name.utf8.allSatisfy({ $0.isNamePart || $0 == UInt8(ascii: " ") })
        else { return nil }
        return name.unicodeScalars.map { $0 == " " ? "\\ " : String($0) }.joined()
    }
}

extension UInt8 {
    fileprivate var isNameStart: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...: true
        default: false
        }
    }

    fileprivate var isNamePart: Bool {
        isNameStart || (0x30...0x39).contains(self) || self == UInt8(ascii: "-") || self == UInt8(ascii: "$")
    }

    fileprivate var isNumberPart: Bool {
        switch self {
        case 0x30...0x39, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): true
        default: false
        }
    }
}
