/// Other names that a query may use: an SDK's names for stored properties and classes, and properties that stand for backlinks.
package struct QueryAliases: Hashable, Sendable {
    /// By stored class name, then by alias: a property's name, or a path such as `@links.Shop.books`. An alias may lead to another.
    package var properties: [String: [String: String]]
    /// Stored class names by alias.
    package var classes: [String: String]

    package init(properties: [String: [String: String]] = [:], classes: [String: String] = [:]) {
        self.properties = properties
        self.classes = classes
    }

    /// How many aliases one path may go through; more are a loop.
    static let longest = 50

    func path(of name: String, in type: String) -> String? { properties.isEmpty ? nil : properties[type]?[name] }
}
