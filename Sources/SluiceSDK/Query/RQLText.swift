import SluiceCore
import SluiceQuery

/// Texts of the query language.
enum RQLText {
    /// A constant. Strings that hold a quote, a backslash or a control character are written in base64: the language has no escapes.
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
        case .dictionary, .link: return "null"
        }
    }

    private static func number(_ value: Double, text: String) -> String {
        value.isNaN ? "nan" : value.isInfinite ? (value < 0 ? "-inf" : "inf") : text
    }

    private static func string(_ text: String) -> String {
        let isPlain = text.unicodeScalars.allSatisfy { $0 != "\"" && $0 != "'" && $0 != "\\" && $0.value >= 0x20 }
        return isPlain ? "\"\(text)\"" : "B64\"\(Base64.encode(Array(text.utf8)))\""
    }

    /// A property's name as the language writes it: blanks are escaped.
    static func name(_ name: String) -> String { name.replacing(" ", with: "\\ ") }

    /// The canonical form of a query.
    /// - Throws: `querySyntax`.
    static func canonical(_ text: String) throws(SluiceError) -> String {
        try SluiceQuery.Query.parse(text).canonicalText
    }
}
