// The words for parts of a schema in JSON: for plugins (docs/plugin-abi.md), and in the stored record of the app's schemas.

extension ObjectKind {
    /// `top_level`, `embedded` or `asymmetric`.
    package var word: String {
        switch self {
        case .topLevel: "top_level"
        case .embedded: "embedded"
        case .asymmetric: "asymmetric"
        }
    }

    package init?(word: String) {
        guard let kind = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = kind
    }
}

extension CollectionKind {
    /// `none`, `list`, `set` or `dictionary`.
    package var word: String {
        switch self {
        case .none: "none"
        case .list: "list"
        case .set: "set"
        case .dictionary: "dictionary"
        }
    }

    package init?(word: String) {
        guard let kind = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = kind
    }
}

extension PropertyType {
    private static let scalars: [PropertyType] = [
        .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed,
    ]
    private static let (linkMark, embeddedMark) = ("link:", "embedded:")

    /// The kind's name, or for a type with a target `link:Airport` and `embedded:Address`.
    package var word: String {
        switch self {
        case .link(let target): Self.linkMark + target
        case .embedded(let target): Self.embeddedMark + target
        default: name
        }
    }

    /// - Returns: Nil for an unknown word, and for `link:` or `embedded:` without a target.
    package init?(word: String) {
        for (mark, make) in [(Self.linkMark, PropertyType.link(to:)), (Self.embeddedMark, PropertyType.embedded)]
        where word.utf8.starts(with: mark.utf8) {
            let target = Substring(word.utf8.dropFirst(mark.utf8.count))
            if target.isEmpty { return nil }
            self = make(String(target))
            return
        }
        guard let type = Self.scalars.first(where: { $0.name == word }) else { return nil }
        self = type
    }
}
