import SluiceCore
import SluiceValues

/// Builds classes from the JSON schemas of the collections.
struct SchemaReader {
    let list: ProblemList

    struct Result {
        var schema = Schema([])
        var tables: [String: AppConfiguration.Table] = [:]

        /// Returns the class of this name, or of the collection of this name. Embedded classes are not found.
        func type(calledOrIn name: String) -> ObjectType? {
            if let type = schema[name], type.kind != .embedded { return type }
            return tables.first { $0.value.name == name }.flatMap { schema[$0.key] }
        }

        /// The names that `type(calledOrIn:)` finds.
        var names: [String] { tables.keys + tables.values.map(\.name) }
    }

    /// A class whose links are not resolved yet.
    struct Draft {
        var name: String
        var kind: ObjectKind
        var properties: [Property]
        /// The position of its schema.
        var node: ConfigNode
    }

    func read(_ collections: [DataSourceReader.Collection], asymmetric: ConfigNode?) -> Result {
        var drafts = Drafts()
        var tables: [String: AppConfiguration.Table] = [:]
        var relationships: [(title: String, node: ConfigNode)] = []
        for collection in collections {
            guard let title = readCollection(collection.schema, into: &drafts) else { continue }
            tables[title] = collection.table
            if let node = collection.relationships { relationships.append((title, node)) }
        }
        // Before the links, which must not lead to asymmetric classes.
        markAsymmetric(asymmetric, Result(schema: drafts.schema, tables: tables), &drafts)
        for (title, node) in relationships {
            RelationshipReader(targets: .tables(tables)).read(node, of: title, into: &drafts)
        }
        return Result(schema: drafts.schema, tables: tables)
    }

    /// Reads classes without tables. Those without a primary key are embedded.
    ///
    /// - Parameter relationships: The relationships by class, including embedded ones.
    func read(_ classes: [ConfigNode], relationships: ConfigNode?, asymmetric: ConfigNode?) -> Schema {
        var drafts = Drafts()
        for node in classes where node.json["properties"]?["_id"] != nil { _ = readCollection(node, into: &drafts) }
        for node in classes where node.json["properties"]?["_id"] == nil { _ = readEmbedded(node, into: &drafts) }
        let names = drafts.schema.types.map(\.name)
        let targets = LinkTargets.classes(drafts.schema.types.filter { $0.kind != .embedded }.map(\.name))
        let tables = Dictionary(uniqueKeysWithValues: names.map { ($0, AppConfiguration.Table(schema: "", name: $0)) })
        markAsymmetric(asymmetric, Result(schema: drafts.schema, tables: tables), &drafts)
        for (title, node) in relationships?.members ?? [] {
            if drafts[title] == nil {
                node.problem(
                    "The class '\(title)' does not exist.",
                    fix: Suggestion.nearest(to: title, in: names).map { "Did you mean '\($0)'?" } ?? "Remove it.")
            } else {
                RelationshipReader(targets: targets).read(node, of: title, into: &drafts)
            }
        }
        return drafts.schema
    }

    private func markAsymmetric(_ names: ConfigNode?, _ result: Result, _ drafts: inout Drafts) {
        for element in names?.elements ?? [] {
            guard let name = element.string else { continue }
            if let type = result.type(calledOrIn: name) {
                drafts[type.name]?.kind = .asymmetric
            } else {
                element.problem(
                    "The collection '\(name)' does not exist.",
                    fix: Suggestion.nearest(to: name, in: result.names).map { "Did you mean '\($0)'?" } ?? "Remove it.")
            }
        }
    }

    /// The classes in order of appearance; `schema` lists embedded ones last.
    struct Drafts {
        private var all: [Draft] = []

        subscript(_ name: String) -> Draft? {
            get { all.first { $0.name == name } }
            set {
                let index = all.firstIndex { $0.name == name }
                if let index, let newValue { all[index] = newValue } else if let newValue { all.append(newValue) }
            }
        }

        var schema: Schema {
            let ordered = all.filter { $0.kind != .embedded } + all.filter { $0.kind == .embedded }
            return Schema(
                ordered.map {
                    ObjectType(name: $0.name, kind: $0.kind, properties: $0.properties, primaryKey: $0.kind == .embedded ? nil : "_id")
                })
        }
    }

    // MARK: One collection

    private static let objectKeys = [
        "title", "bsonType", "type", "required", "properties", "additionalProperties", "description", "$schema", "$id", "validate",
    ]

    /// Returns the class name; nil if the collection has no schema or a problem.
    private func readCollection(_ node: ConfigNode, into drafts: inout Drafts) -> String? {
        // An export has an empty object for a collection without a schema.
        if node.json.members?.isEmpty == true {
            list.notes.append("\(node.file) is empty: the collection is not synchronised.")
            return nil
        }
        let members = node.members(allowing: Self.objectKeys)
        guard let title = members.required("title", of: node)?.string else { return nil }
        checkClassName(title, members["title"] ?? node)
        if drafts[title] != nil {
            (members["title"] ?? node).problem("Two collections have the title '\(title)'.", fix: "Class names are unique: rename one.")
            return nil
        }
        // Reserves the name, so that an embedded class cannot use it.
        drafts[title] = Draft(name: title, kind: .topLevel, properties: [], node: node)
        var properties = readProperties(node, members, into: &drafts)
        checkPrimaryKey(&properties, title, node)
        drafts[title]?.properties = properties
        return title
    }

    private func checkClassName(_ title: String, _ node: ConfigNode) {
        if title.isEmpty || title.utf8.count > Limits.classNameBytes {
            node.problem("The class name '\(title)' has \(title.utf8.count) bytes.", fix: "Use 1 to \(Limits.classNameBytes).")
        }
    }

    private func checkPrimaryKey(_ properties: inout [Property], _ title: String, _ node: ConfigNode) {
        guard let index = properties.firstIndex(where: { $0.name == "_id" }) else {
            return node.problem("\(title) has no '_id'.", fix: "Every class has a primary key '_id'.", code: .configMissing)
        }
        let key = properties[index]
        if ![.string, .int, .objectId, .uuid].contains(key.type) || key.collection != .none {
            node.problem("The primary key of \(title) is of type \(key.type).", fix: "It must be string, long, objectId or uuid.")
        }
        properties[index].isOptional = false
    }

    private func readProperties(
        _ node: ConfigNode, _ members: [String: ConfigNode], into drafts: inout Drafts
    ) -> [Property] {
        if let type = members["bsonType"]?.string ?? members["type"]?.string, type != "object" {
            node.problem("\(node.name) must have bsonType 'object', not '\(type)'.")
        }
        let required = Set(members["required"]?.strings ?? [])
        var properties: [Property] = []
        for (name, property) in members["properties"]?.members ?? [] {
            guard let shape = PropertyReader(list: list, schema: self).read(property, into: &drafts) else { continue }
            properties.append(
                Property(
                    id: UInt32(properties.count + 1), name: name, type: shape.type, collection: shape.collection,
                    isOptional: shape.isNullable || (shape.collection == .none && !required.contains(name))))
        }
        let names = members["properties"]?.json.members?.map(\.key) ?? []
        for name in required.sorted() where !names.contains(name) {
            members["required"]?.problem(
                "'\(name)' is required and not a property.",
                fix: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" } ?? "Add the property.")
        }
        return properties
    }

    // MARK: Embedded classes

    /// Reads an object with a title, which is a class of its own. A title may occur several times if the definitions are equal.
    func readEmbedded(_ node: ConfigNode, into drafts: inout Drafts) -> PropertyType? {
        let members = node.members(allowing: Self.objectKeys)
        guard let title = members["title"]?.string else {
            node.problem(
                "\(node.name) is an object without a class name.", fix: "Give it a 'title', or 'additionalProperties' for a dictionary.")
            return nil
        }
        checkClassName(title, members["title"] ?? node)
        let isKnown = drafts[title] != nil
        // Reserved before the properties are read: a class may contain itself.
        if !isKnown { drafts[title] = Draft(name: title, kind: .embedded, properties: [], node: node) }
        let properties = readProperties(node, members, into: &drafts)
        guard let draft = drafts[title] else { return nil }
        // A class that contains itself is known without properties until its outermost definition has been read.
        if !isKnown || (draft.kind == .embedded && draft.properties.isEmpty) {
            drafts[title]?.properties = properties
        } else if draft.kind != .embedded {
            node.problem("'\(title)' is the class of a collection as well.", fix: "Rename one.")
        } else if draft.properties != properties, !properties.isEmpty {
            node.problem(
                "The embedded class '\(title)' differs from the one in \(draft.node.file):\(draft.node.line).",
                fix: "Make them equal, or rename one.")
        }
        return .embedded(title)
    }
}
