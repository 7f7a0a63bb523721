import Foundation
import SluiceCore
import SluiceQuery
import SluiceValues

/// Renders values and names as text of the query language.
enum RQLText {
    /// Renders a constant.
    /// Strings with a quote, a backslash or a control character are rendered in base64, because the language has no escapes.
    static func literal(_ value: Value) -> String {
        switch value {
        case .null: return "null"
        case .bool(let v): return v ? "true" : "false"
        case .int(let v): return "\(v)"
        case .float(let v): return number(Double(v), text: "\(v)") + (v.isFinite ? "f" : "")
        case .double(let v): return number(v, text: "\(v)")
        case .decimal(let v): return v.isNaN ? "nan" : v.isInfinite ? (v.isNegative ? "-inf" : "inf") : v.description
        case .string(let v): return string(v)
        case .binary(let v): return "binary(B64\"\(Base64.encode(v))\")"
        case .timestamp(let v): return "T\(v.seconds):\(v.nanoseconds)"
        case .objectId(let v): return "oid(\(v))"
        case .uuid(let v): return "uuid(\(v))"
        case .list(let v): return "{\(v.map { literal($0) }.joined(separator: ", "))}"
        case .link(let type, let key): return "obj(\(string(type)), \(literal(key)))"
        case .dictionary: return "null"
        }
    }

    /// Renders an app's argument; nil if a query cannot contain it.
    static func constant(_ argument: Any) -> String? {
        // Fast path for the most frequent types, as the casts below cost a microsecond.
        // Exact types only: a number object must not match.
        let type = type(of: argument)
        if type == Int.self, let value = argument as? Int { return "\(value)" }
        if type == String.self, let value = argument as? String { return string(value) }
        if type == Bool.self, let value = argument as? Bool { return value ? "true" : "false" }
        if type == Double.self, let value = argument as? Double { return literal(.double(value)) }
        if let object = argument as? Object { return literal(.link(type: object.model.name, key: object.model.primaryKey(of: object))) }
        if let mixed = argument as? AnyRealmValue { return constant(queryArgument(mixed)) }
        // Sequences become lists, unless they convert to another kind of value.
        if !(argument is String), !(argument is Data), let sequence = argument as? any Sequence, Value(any: argument)?.isList ?? true {
            let members = RQLText.members(sequence).map { constant($0) }
            guard members.allSatisfy({ $0 != nil }) else { return nil }
            return "{\(members.compactMap(\.self).joined(separator: ", "))}"
        }
        return Value(any: argument).map { literal($0) }
    }

    private static func members(_ sequence: some Sequence) -> [Any] { sequence.map { $0 as Any } }

    private static func number(_ value: Double, text: String) -> String {
        value.isNaN ? "nan" : value.isInfinite ? (value < 0 ? "-inf" : "inf") : text
    }

    private static func string(_ text: String) -> String {
        let isPlain = text.unicodeScalars.allSatisfy { $0 != "\"" && $0 != "'" && $0 != "\\" && $0.value >= 0x20 }
        return isPlain ? "\"\(text)\"" : "B64\"\(Base64.encode(Array(text.utf8)))\""
    }

    /// Renders a property's name; blanks are escaped.
    static func name(_ name: String) -> String { name.replacing(" ", with: "\\ ") }

    /// Returns the canonical form of a query.
    /// - Throws: `querySyntax`.
    static func canonical(_ text: String) throws(SluiceError) -> String {
        try SluiceQuery.Query.parse(text).canonicalText
    }
}

extension Value {
    fileprivate var isList: Bool { if case .list = self { true } else { false } }
}
