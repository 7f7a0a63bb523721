import SluiceCore
import SluiceValues

/// Reads the schema of one property.
struct PropertyReader {
    let list: ProblemList
    let schema: SchemaReader
    /// The class of an object without a title.
    let untitled: String

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
    /// Types of JSON schema with one meaning here.
    private static let aliases = ["boolean": "bool", "integer": "long"]
    /// Types of BSON and JSON schema without a counterpart in a client. App Services did not synchronise them.
    private static let unfit: Set<String> = [
        "number", "timestamp", "null", "regex", "dbPointer", "javascript", "javascriptWithScope", "symbol", "undefined", "minKey", "maxKey",
    ]
    /// The validations of JSON schema. App Services did not apply them to synced writes either.
    private static let validations = [
        "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems",
        "maxItems", "minProperties", "maxProperties", "default", "validate", "title", "description", "format", "const", "not", "allOf",
        "anyOf", "oneOf", "dependencies", "patternProperties", "propertyNames", "additionalItems",
    ]
    /// Keywords that only describe.
    private static let descriptions = ["title", "description", "default", "format", "example", "examples", "readOnly", "$comment"]

    func read(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        guard let (name, isNullable) = typeName(node) else { return nil }
        var shape: Shape?
        switch name {
        case "array": shape = array(node, into: &drafts)
        case "object": shape = object(node, into: &drafts)
        default:
            guard let type = Self.scalars[Self.aliases[name] ?? name] else {
                if Self.unfit.contains(name) {
                    node.omit("'\(name)' of \(node.name) is no type that a client has.", fix: Self.unfitFix(name))
                    return nil
                }
                let known = Self.scalars.keys + ["array", "object"]
                node.problem(
                    "'\(name)' is not a type.",
                    fix: Suggestion.nearest(to: name, in: known).map { "Did you mean '\($0)'?" }
                        ?? "Use \(known.sorted().joined(separator: ", ")).")
                return nil
            }
            let members = node.members(ofSchema: ["bsonType", "type"] + Self.validations + Self.descriptions)
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
            node.omit("\(node.name) has no bsonType.", fix: "Add it.", code: .configMissing)
            return nil
        }
        if let name = type.string { return (name, false) }
        let names = type.array?.compactMap(\.string) ?? []
        let others = names.filter { $0 != "null" }
        guard others.count == 1 else {
            node.omit("The bsonType of \(node.name) must be one type.", fix: "Use 'mixed' for values of several types.")
            return nil
        }
        return (others[0], names.count > 1)
    }

    private func array(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        let members = node.members(ofSchema: ["bsonType", "type", "items", "uniqueItems"] + Self.validations + Self.descriptions)
        noteValidations(members, node)
        guard let items = members["items"] else {
            node.omit("'items' is missing in \(node.name).", fix: "Add it.", code: .configMissing)
            return nil
        }
        guard items.json.members != nil else {
            items.omit("\(items.name) must be one schema, not \(items.json.kindName).", fix: "Use 'mixed' for elements of several types.")
            return nil
        }
        guard let element = read(items, into: &drafts) else { return nil }
        guard element.collection == .none else {
            items.omit("\(node.name) is a collection of collections.", fix: "Use 'mixed' items for nested collections.")
            return nil
        }
        let isSet = members["uniqueItems"]?.bool ?? false
        if isSet, case .embedded = element.type {
            node.omit("\(node.name) is a set of embedded objects.", fix: "Remove 'uniqueItems'.")
        }
        return Shape(type: element.type, collection: isSet ? .set : .list, isNullable: element.type != .mixed && element.isNullable)
    }

    private func object(_ node: ConfigNode, into drafts: inout SchemaReader.Drafts) -> Shape? {
        // An empty object of properties beside a schema for all others is a dictionary, as App Services wrote it.
        let hasProperties = node.json["properties"].map { $0.members?.isEmpty != true } ?? (node.json["title"] != nil)
        guard !hasProperties, case .object = node.json["additionalProperties"] else {
            return schema.readEmbedded(node, untitled: untitled, into: &drafts).map { Shape(type: $0, collection: .none) }
        }
        let keys = ["bsonType", "type", "properties", "required", "additionalProperties"]
        let members = node.members(ofSchema: keys + Self.validations + Self.descriptions)
        noteValidations(members, node)
        guard let values = members["additionalProperties"], let value = read(values, into: &drafts) else { return nil }
        guard value.collection == .none else {
            values.omit("\(node.name) is a collection of collections.", fix: "Use 'mixed' values for nested collections.")
            return nil
        }
        return Shape(type: value.type, collection: .dictionary, isNullable: value.type != .mixed && value.isNullable)
    }

    private func noteValidations(_ members: [String: ConfigNode], _ node: ConfigNode) {
        let without = members.filter { Self.validations.contains($0.key) && !Self.descriptions.contains($0.key) }
        if let first = without.keys.min() {
            node.note(.unused, "'\(first)' of \(node.name) is not checked for synchronised writes.")
        }
        if members["default"] != nil {
            node.note(.unused, "'default' of \(node.name) is not applied: the classes of an app have their own.")
        }
    }

    private static func unfitFix(_ name: String) -> String {
        switch name {
        case "number": "Use 'int', 'long', 'double' or 'decimal', as the app's class has it."
        case "timestamp": "Use 'date'."
        default: "Use 'mixed' or another type."
        }
    }
}
