import SluiceCore
import SluiceValues

/// Reads the schema of one property.
struct PropertyReader {
    let list: ProblemList
    let schema: SchemaReader

    struct Shape {
        var type: PropertyType
        var collection: CollectionKind
        /// `true` if null is a value of the type, regardless of `required`.
        var isNullable = false
    }

    private static let scalars: [String: PropertyType] = [
        "bool": .bool, "int": .int, "long": .int, "float": .float, "double": .double, "decimal": .decimal, "decimal128": .decimal,
        "string": .string, "date": .timestamp, "objectId": .objectId, "uuid": .uuid, "binData": .binary, "binary": .binary, "mixed": .mixed,
    ]
    /// The validations of JSON schema. App Services did not apply them to synced writes either.
    private static let validations = [
        "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems",
        "maxItems", "minProperties", "maxProperties", "default", "validate", "title", "description", "format",
    ]

    func read(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        guard let (name, isNullable) = typeName(node) else { return nil }
        var shape: Shape?
        switch name {
        case "array": shape = array(node, into: &drafts)
        case "object": shape = object(node, into: &drafts)
        default:
            guard let type = Self.scalars[name] else {
                let known = Self.scalars.keys + ["array", "object"]
                node.problem(
                    "'\(name)' is not a type.",
                    fix: Suggestion.nearest(to: name, in: known).map { "Did you mean '\($0)'?" }
                        ?? "Use \(known.sorted().joined(separator: ", ")).")
                return nil
            }
            let members = node.members(allowing: ["bsonType", "type"] + Self.validations)
            noteValidations(members, node)
            shape = Shape(type: type, collection: .none, isNullable: type == .mixed)
        }
        if isNullable, shape?.collection == CollectionKind.none { shape?.isNullable = true }
        return shape
    }

    /// Returns the `bsonType`: one name, or one name beside "null".
    private func typeName(_ node: ConfigNode) -> (name: String, isNullable: Bool)? {
        guard node.json.members != nil else {
            node.problem("\(node.name) must be an object with a bsonType.")
            return nil
        }
        guard let type = node.json["bsonType"] ?? node.json["type"] else {
            node.problem("\(node.name) has no bsonType.", fix: "Add it.", code: .configMissing)
            return nil
        }
        if let name = type.string { return (name, false) }
        let names = type.array?.compactMap(\.string) ?? []
        let others = names.filter { $0 != "null" }
        guard others.count == 1 else {
            node.problem("The bsonType of \(node.name) must be one type.", fix: "Use 'mixed' for values of several types.")
            return nil
        }
        return (others[0], names.count > 1)
    }

    private func array(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        let members = node.members(allowing: ["bsonType", "type", "items", "uniqueItems"] + Self.validations)
        noteValidations(members, node)
        guard let items = members.required("items", of: node), let element = read(items, into: &drafts) else { return nil }
        guard element.collection == .none else {
            items.problem("\(node.name) is a collection of collections.", fix: "Use 'mixed' items for nested collections.")
            return nil
        }
        let isSet = members["uniqueItems"]?.bool ?? false
        if isSet, case .embedded = element.type {
            node.problem("\(node.name) is a set of embedded objects.", fix: "Remove 'uniqueItems'.")
        }
        return Shape(type: element.type, collection: isSet ? .set : .list, isNullable: element.type != .mixed && element.isNullable)
    }

    private func object(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        guard node.json["properties"] == nil, node.json["title"] == nil, case .object = node.json["additionalProperties"] else {
            return schema.readEmbedded(node, into: &drafts).map { Shape(type: $0, collection: .none) }
        }
        let members = node.members(allowing: ["bsonType", "type", "additionalProperties"] + Self.validations)
        noteValidations(members, node)
        guard let values = members["additionalProperties"], let value = read(values, into: &drafts) else { return nil }
        guard value.collection == .none else {
            values.problem("\(node.name) is a collection of collections.", fix: "Use 'mixed' values for nested collections.")
            return nil
        }
        return Shape(type: value.type, collection: .dictionary, isNullable: value.type != .mixed && value.isNullable)
    }

    private func noteValidations(_ members: [String: ConfigNode], _ node: ConfigNode) {
        let without = members.keys.filter { Self.validations.contains($0) && !["title", "description", "default", "format"].contains($0) }
        if let first = without.min() {
            list.notes.append("\(node.file): '\(first)' of \(node.name) is not checked for synchronised writes.")
        }
        if members["default"] != nil {
            list.notes.append("\(node.file): 'default' of \(node.name) is not applied: the classes of an app have their own.")
        }
    }
}
