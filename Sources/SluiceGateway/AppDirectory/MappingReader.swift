import SluiceCore
import SluiceValues

/// Reads `mapping` of `schema.json`: the columns of properties whose column has another name than they have.
struct MappingReader {
    static let key = "mapping"

    /// The columns that every table of PostgreSQL has beside its own.
    private static let system: Set<String> = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"]

    /// Returns the columns by property, without those that are called like their property.
    ///
    /// - Parameter schema: The class's schema, whose properties the mapping names.
    func read(_ node: ConfigNode, of schema: ConfigNode) -> [String: String] {
        guard node.json.members != nil else {
            node.problem("'mapping' must be an object, not \(node.json.kindName).", fix: #"Write {"PROPERTY": "column"}."#)
            return [:]
        }
        let properties = schema.child("properties")?.json.members?.map(\.key) ?? []
        var columns: [String: String] = [:]
        for (property, column) in node.members {
            guard properties.contains(property) else {
                column.problem(
                    "'\(property)' is not a property of the class.",
                    fix: Suggestion.nearest(to: property, in: properties).map { "Did you mean '\($0)'?" }
                        ?? "Add the property, or remove it.")
                continue
            }
            if let name = column.string, isColumn(name, column) { columns[property] = name }
        }
        requireDistinct(columns, properties, node)
        return columns.filter { $0.key != $0.value }
    }

    /// Reports a mapping in an embedded class, whose objects have no columns.
    func refuse(inside node: ConfigNode) {
        guard let mapping = node.child(Self.key) else { return }
        mapping.problem(
            "\(node.name) is an embedded object, which has no columns.",
            fix: "Map the property that holds it, in 'mapping' at the top of the file.")
    }

    private func isColumn(_ name: String, _ node: ConfigNode) -> Bool {
        let size = name.utf8.count
        if size == 0 || size > Limits.columnNameBytes || name.utf8.contains(0) {
            node.problem(
                "'\(name)' is not a name of a column: it has \(size) bytes.", fix: "Use 1 to \(Limits.columnNameBytes) bytes without NUL.")
            return false
        }
        if Self.system.contains(name) {
            node.problem("'\(name)' is a system column of PostgreSQL.", fix: "Name a column of the table.")
            return false
        }
        return true
    }

    private func requireDistinct(_ columns: [String: String], _ properties: [String], _ node: ConfigNode) {
        var owners: [String: String] = [:]
        for property in properties {
            let column = columns[property] ?? property
            if let other = owners[column] {
                let place = node.child(columns[property] == nil ? other : property) ?? node
                place.problem(
                    "The properties '\(other)' and '\(property)' have the same column '\(column)'.",
                    fix: "Give each property a column of its own.")
            }
            owners[column] = property
        }
    }
}
