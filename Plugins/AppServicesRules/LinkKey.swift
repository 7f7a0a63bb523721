import SluicePluginKit

/// A link as rules compare it: by the primary key of its target, as App Services stored it.
struct LinkKey {
    /// The type of the target's primary key.
    let type: String
    /// The target's class.
    let target: String

    private static let prefix = "key:"

    /// Reads the type of a property that `comparingLinks(in:)` has prepared; nil if it is no link.
    init?(_ property: PluginProperty) {
        guard property.type.hasPrefix(Self.prefix) else { return nil }
        let parts = property.type.dropFirst(Self.prefix.count).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        (type, target) = (String(parts[0]), String(parts[1]))
    }

    fileprivate static func type(_ property: PluginProperty, in schema: [String: PluginObjectType]) -> String? {
        guard property.type.hasPrefix("link:") else { return nil }
        let target = String(property.type.dropFirst("link:".count))
        guard let key = schema[target]?.primaryKey, let found = schema[target]?.property(named: key) else { return nil }
        return "\(prefix)\(found.type):\(target)"
    }
}

extension PluginProperty {
    /// The type of the values that a rule compares with the property.
    var comparedType: String { LinkKey(self)?.type ?? type }
}

extension PluginObjectType {
    /// Returns the class with the keys of links in place of the links.
    func comparingLinks(in schema: [String: PluginObjectType]) -> PluginObjectType {
        var type = self
        for (name, property) in properties {
            if let found = LinkKey.type(property, in: schema) { type.properties[name]?.type = found }
        }
        return type
    }
}
