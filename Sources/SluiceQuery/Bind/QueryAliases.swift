/// Other names that a query may use: an SDK's names for stored properties and classes, and properties that represent backlinks.
package struct QueryAliases: Hashable, Sendable {
    /// Paths by stored class name, then by alias. A path is a property's name, or text such as `@links.Shop.books`. It may contain an
    /// alias.
    package var properties: [String: [String: String]]
    /// Stored class names by alias.
    package var classes: [String: String]

    package init(properties: [String: [String: String]] = [:], classes: [String: String] = [:]) {
        self.properties = properties
        self.classes = classes
    }

    /// The maximum number of aliases in one path. More are taken for a loop.
    static let longest = 50

    func path(of name: String, in type: String) -> String? { properties.isEmpty ? nil : properties[type]?[name] }
}
