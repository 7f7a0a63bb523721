import SluiceCore

/// The possible targets of a relationship's `ref`.
enum LinkTargets {
    /// The reference `#/relationship/<data source>/<database>/<collection>` of an app directory, by the tables of classes.
    /// Links to omitted collections are no links.
    case tables([String: AppConfiguration.Table], omitted: Set<AppConfiguration.Table>)
    /// A class name, for schemas without tables. A reference also resolves if its collection is the class's name in singular or plural,
    /// in any case (`flights` is Flight).
    case classes([String])

    /// - Returns: A class; nil with a problem if there is none.
    func resolve(_ text: String, _ ref: ConfigNode) -> String? {
        let parts = text.split(separator: "/").map(String.init)
        let isReference = parts.count == 5 && parts[0] == "#" && parts[1] == "relationship"
        switch self {
        case .tables(let tables, let omitted):
            guard isReference else {
                ref.problem("'\(text)' is not a reference.", fix: "Write #/relationship/<data source>/<database>/<collection>.")
                return nil
            }
            let table = AppConfiguration.Table(schema: parts[3], name: parts[4])
            if let found = tables.first(where: { $0.value.isPlace(of: table) }) { return found.key }
            if omitted.contains(table) {
                ref.note(.unused, "The collection '\(parts[3])/\(parts[4])' is not synchronised: the property is a key and no link.")
                return nil
            }
            ref.problem(
                "No collection '\(parts[3])/\(parts[4])' has a schema.",
                fix: Suggestion.nearest(to: parts[4], in: tables.values.map(\.name)).map { "Did you mean '\($0)'?" } ?? "Add its schema.")
        case .classes(let names):
            let name = isReference ? parts[4] : text
            if names.contains(name) { return name }
            let alike = names.filter { LinkTargets.collections(of: $0).contains(name.lowercased()) }
            if isReference, alike.count == 1 { return alike[0] }
            ref.problem(
                "The class '\(name)' does not exist.",
                fix: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                    ?? "Name a class: \(names.joined(separator: ", ")).")
        }
        return nil
    }

    /// Returns the possible collection names of a class, in lower case.
    private static func collections(of name: String) -> [String] {
        let name = name.lowercased()
        return [name, name + "s", name + "es", name.hasSuffix("y") ? name.dropLast() + "ies" : name]
    }
}
