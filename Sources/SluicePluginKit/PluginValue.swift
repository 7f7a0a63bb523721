@_exported public import SluiceValues

/// JSON for plugins: the arguments and answers of hooks, and the contents of files in the app directory.
///
/// It is the gateway's own type. Objects keep the order of their members and, if parsed, the place of each key, so that a plugin can report
/// the place of an error. Integers within 64 bits remain integers.
public typealias PluginValue = JSON

extension PluginValue {
    /// Reads one JSON text (RFC 8259).
    /// - Throws: The first error in the text, with its place.
    public init(parsing text: String) throws(JSONError) {
        try self.init(parsing: Array(text.utf8))
    }

    init(parsing bytes: [UInt8]) throws(JSONError) { self = try JSON.located(bytes) }

    /// The value as compact JSON. Numbers without a JSON form become extended JSON's `$numberDouble`.
    public var json: String {
        var bytes: [UInt8] = []
        write(into: &bytes, extended: true)
        return String(decoding: bytes, as: UTF8.self)
    }

    public var isNull: Bool { if case .null = self { true } else { false } }

    /// Any number, in plain JSON or in a form of extended JSON (`$numberInt`, `$numberLong`, `$numberDouble`).
    public var number: Double? {
        switch self {
        case .int(let v): return Double(v)
        case .double(let v): return v
        case .object:
            switch ExtendedForm(self) {
            case .int(let v): return Double(v)
            case .double(let v): return v
            default: return nil
            }
        default: return nil
        }
    }

    /// Sets a member of an object, at its place or at the end. Has no effect on other kinds of value.
    public mutating func set(_ key: String, to value: PluginValue) {
        guard case .object(var members) = self else { return }
        if let index = members.lastIndex(where: { $0.key.hasSameBytes(as: key) }) {
            members[index].value = value
        } else {
            members.append(Member(key, value))
        }
        self = .object(members)
    }
}
