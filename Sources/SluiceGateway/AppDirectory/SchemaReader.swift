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

    /// - Parameter database: The database that the settings of sync name.
    func read(_ collections: [DataSourceReader.Collection], asymmetric: ConfigNode?, database: String?) -> Result {
        var drafts = Drafts()
        var tables: [String: AppConfiguration.Table] = [:]
        var omitted: Set<AppConfiguration.Table> = []
        var relationships: [(title: String, node: ConfigNode)] = []
        // Of collections with one title, App Services synchronised the one in the database of the settings.
        for collection in collections.filter({ $0.table.schema == database }) + collections.filter({ $0.table.schema != database }) {
            if let title = collection.schema.json["title"]?.string, let other = tables[title], other.schema == database,
                collection.table.schema != database
            {
                collection.schema.note(
                    .omitted, "The collection \(other.schema)/\(other.name) has the title '\(title)'. The collection is not synchronised.",
                    subject: title, fix: "Rename one, or name its database in 'database_name' of sync/config.json.")
                omitted.insert(collection.table)
                continue
            }
            guard let title = readCollection(collection.schema, named: collection.table.name, into: &drafts) else {
                omitted.insert(collection.table)
                continue
            }
            tables[title] = collection.table
            if let node = collection.schema.child("mapping") { tables[title]?.columns = MappingReader().read(node, of: collection.schema) }
            if let node = collection.relationships { relationships.append((title, node)) }
        }
        // Before the links, which must not lead to asymmetric classes.
        markAsymmetric(asymmetric, Result(schema: drafts.schema, tables: tables), &drafts)
        for (title, node) in relationships {
            RelationshipReader(targets: .tables(tables, omitted: omitted)).read(node, of: title, into: &drafts)
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
                element.unused(
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

    /// Returns the class name; nil if the collection has no schema, cannot be synchronised, or has a problem.
    ///
    /// - Parameter name: The class of a schema without a title; nil if there must be one.
    private func readCollection(_ node: ConfigNode, named name: String? = nil, into drafts: inout Drafts) -> String? {
        // An export has an empty object for a collection without a schema.
        if node.json.members?.isEmpty == true {
            list.note(.omitted, file: node.file, "\(node.file) is empty: the collection is not synchronised.")
            return nil
        }
        list.startCollection()
        let before = drafts
        let members = node.members(ofSchema: Self.objectKeys + [MappingReader.key])
        let titled = members["title"]?.string.flatMap { $0.isEmpty ? nil : $0 } ?? name
        guard let title = titled ?? members.required("title", of: node)?.string else { return nil }
        checkClassName(title, members["title"] ?? node)
        if drafts[title] != nil {
            (members["title"] ?? node).problem("Two collections have the title '\(title)'.", fix: "Class names are unique: rename one.")
            return nil
        }
        // Reserves the name, so that an embedded class cannot use it.
        drafts[title] = Draft(name: title, kind: .topLevel, properties: [], node: node)
        var properties = readProperties(node, members, of: title, into: &drafts)
        checkPrimaryKey(&properties, title, node)
        drafts[title]?.properties = properties
        if list.omitsCollection(title) {
            drafts = before
            return nil
        }
        return title
    }

    private func checkClassName(_ title: String, _ node: ConfigNode) {
        if title.isEmpty || title.utf8.count > Limits.classNameBytes {
            node.omit("The class name '\(title)' has \(title.utf8.count) bytes.", fix: "Use 1 to \(Limits.classNameBytes).")
        }
    }

    private func checkPrimaryKey(_ properties: inout [Property], _ title: String, _ node: ConfigNode) {
        guard let index = properties.firstIndex(where: { $0.name == "_id" }) else {
            return node.omit("\(title) has no '_id'.", fix: "Every class has a primary key '_id'.", code: .configMissing)
        }
        let key = properties[index]
        if ![.string, .int, .objectId, .uuid].contains(key.type) || key.collection != .none {
            node.omit("The primary key of \(title) is of type \(key.type).", fix: "It must be string, long, objectId or uuid.")
        }
        properties[index].isOptional = false
    }

    private func readProperties(
        _ node: ConfigNode, _ members: [String: ConfigNode], of title: String, into drafts: inout Drafts
    ) -> [Property] {
        if let type = (members["bsonType"] ?? members["type"])?.json.string, type != "object" {
            node.omit("\(node.name) must have bsonType 'object', not '\(type)'.", fix: "Correct it.")
        }
        let required = Set(members["required"]?.strings ?? [])
        var properties: [Property] = []
        for (name, property) in members["properties"]?.members ?? [] {
            let reader = PropertyReader(list: list, schema: self, untitled: "\(title)_\(name)")
            guard let shape = list.naming("\(title).\(name)", { reader.read(property, into: &drafts) }) else { continue }
            properties.append(
                Property(
                    id: UInt32(properties.count + 1), name: name, type: shape.type, collection: shape.collection,
                    isOptional: shape.isNullable || (shape.collection == .none && !required.contains(name))))
        }
        let names = members["properties"]?.json.members?.map(\.key) ?? []
        for name in required.sorted() where !names.contains(name) {
            members["required"]?.unused(
                "'\(name)' is required and not a property.",
                fix: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" } ?? "Add the property.")
        }
        return properties
    }

    // MARK: Embedded classes

    /// Reads an object, which is a class of its own. A title may occur several times if the definitions are equal.
    ///
    /// - Parameter name: The class of an object without a title; nil if there must be one.
    func readEmbedded(_ node: ConfigNode, untitled name: String? = nil, into drafts: inout Drafts) -> PropertyType? {
        MappingReader().refuse(inside: node)
        let members = node.members(ofSchema: Self.objectKeys + [MappingReader.key])
        let titled = members["title"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        guard let title = titled ?? (list.isLax ? name : nil) else {
            node.problem(
                "\(node.name) is an object without a class name.", fix: "Give it a 'title', or 'additionalProperties' for a dictionary.")
            return nil
        }
        if titled == nil, node.json["properties"]?.members?.isEmpty != false {
            node.omit("\(node.name) is an object without properties.", fix: "Add 'properties', or 'additionalProperties' for a dictionary.")
            return nil
        }
        checkClassName(title, members["title"] ?? node)
        let isKnown = drafts[title] != nil
        // Reserved before the properties are read: a class may contain itself.
        if !isKnown { drafts[title] = Draft(name: title, kind: .embedded, properties: [], node: node) }
        let properties = readProperties(node, members, of: title, into: &drafts)
        guard let draft = drafts[title] else { return nil }
        // A class that contains itself is known without properties until its outermost definition has been read.
        if !isKnown || (draft.kind == .embedded && draft.properties.isEmpty) {
            drafts[title]?.properties = properties
        } else if draft.kind != .embedded {
            node.omit("'\(title)' is the class of a collection as well.", fix: "Rename one.")
        } else if draft.properties != properties, !properties.isEmpty {
            node.omit(
                "The embedded class '\(title)' differs from the one in \(draft.node.file):\(draft.node.line).",
                fix: "Make them equal, or rename one.")
        }
        return .embedded(title)
    }
}
