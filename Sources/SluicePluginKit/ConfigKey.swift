/// One key that a plugin's configuration may have.
public struct ConfigKey: Hashable, Sendable {
    /// The kind of a key's value.
    public indirect enum Kind: Hashable, Sendable {
        case bool
        /// An integer. Both bounds are inclusive; nil is unbounded.
        case int(min: Int64? = nil, max: Int64? = nil)
        /// An integer or a number with a fraction. Both bounds are inclusive; nil is unbounded.
        case number(min: Double? = nil, max: Double? = nil)
        case text
        /// One of these texts.
        case choice([String])
        /// A list with elements of one kind.
        case list(of: Kind)
        /// An object with any keys and values of one kind.
        case map(of: Kind)
        /// An object with these keys. Others are errors.
        case object([String: ConfigKey])
        /// Any JSON.
        case any
    }

    public var kind: Kind
    /// `true` if a configuration without the key is an error. Default: `false`.
    public var isRequired: Bool
    /// One sentence for the author of the configuration. Default: empty.
    public var help: String

    public init(_ kind: Kind, required: Bool = false, help: String = "") {
        self.kind = kind
        isRequired = required
        self.help = help
    }
}

extension ConfigKey {
    /// Returns the keys in the form of sluice_plugin.h.
    static func json(_ keys: [String: ConfigKey]) -> PluginValue {
        .object(
            keys.sorted { $0.key < $1.key }.map { name, key in
                var value = key.kind.json
                if key.isRequired { value.set("required", to: true) }
                if !key.help.isEmpty { value.set("help", to: .string(key.help)) }
                return PluginValue.Member(name, value)
            })
    }
}

extension ConfigKey.Kind {
    fileprivate var json: PluginValue {
        var value: PluginValue = ["type": .string(word)]
        switch self {
        case .int(let least, let most):
            if let least { value.set("min", to: .int(least)) }
            if let most { value.set("max", to: .int(most)) }
        case .number(let least, let most):
            if let least { value.set("min", to: .double(least)) }
            if let most { value.set("max", to: .double(most)) }
        case .choice(let texts): value.set("one_of", to: .array(texts.map { .string($0) }))
        case .list(let kind), .map(let kind): value.set("of", to: kind.json)
        case .object(let keys): value.set("keys", to: ConfigKey.json(keys))
        case .bool, .text, .any: break
        }
        return value
    }

    private var word: String {
        switch self {
        case .bool: "bool"
        case .int: "int"
        case .number: "number"
        case .text, .choice: "text"
        case .list: "list"
        case .map: "map"
        case .object: "object"
        case .any: "any"
        }
    }
}
