import SluiceCore
package import SluiceValues

/// Writes classes as the files of an app directory, which `AppDirectory` reads as the same classes.
package struct SchemaFiles {
    private let record: AppSchemaRecord
    private let source: String

    /// - Parameter source: The data source, a folder of `data_sources`.
    package init(_ record: AppSchemaRecord, source: String) {
        self.record = record
        self.source = source
    }

    /// Returns the texts of `schema.json` and, for a class with links, `relationships.json` by path. Classes without a table are left out.
    package func files(of name: String) -> [String: String] {
        guard let type = record.schema[name], let table = record.tables[name] else { return [:] }
        let folder = "data_sources/\(source)/\(table.schema)/\(table.name)"
        var schema = object(type, within: []).members ?? []
        let mapped = type.properties.compactMap { property in
            table.columns[property.name].map { JSON.Member(property.name, .string($0)) }
        }
        if !mapped.isEmpty { schema.append(.init(MappingReader.key, .object(mapped))) }
        var files = ["\(folder)/schema.json": Self.text(.object(schema))]
        let links = links(of: type, at: "", within: [])
        if !links.isEmpty { files["\(folder)/relationships.json"] = Self.text(.object(links)) }
        return files
    }

    /// The text of `sync/config.json` with the queryable fields and the asymmetric classes.
    package var sync: String {
        let byType = record.fields.byType.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
        return Self.text([
            "type": "flexible", "state": "enabled", "service_name": .string(source),
            "queryable_fields_names": Self.names(record.fields.global),
            "collection_queryable_fields_names": .object(byType.map { .init($0.key, Self.names($0.value)) }),
            "indexed_queryable_fields_names": record.fields.indexed.map { [.string($0)] } ?? [],
            "asymmetric_tables": .array(record.schema.types.filter { $0.kind == .asymmetric }.map { .string($0.name) }),
        ])
    }

    private static func names(_ names: Set<String>) -> JSON { .array(names.sorted().map { .string($0) }) }

    // MARK: Classes

    /// - Parameter outer: The classes that contain this one. Their definition is not repeated, as a class may contain itself.
    private func object(_ type: ObjectType, within outer: Set<String>) -> JSON {
        if outer.contains(type.name) { return ["title": .string(type.name), "bsonType": "object"] }
        let inner = outer.union([type.name])
        let required = type.properties.filter { $0.collection == .none && !$0.isOptional }.map { JSON.string($0.name) }
        var members: [JSON.Member] = [.init("title", .string(type.name)), .init("bsonType", "object")]
        if !required.isEmpty { members.append(.init("required", .array(required))) }
        members.append(.init("properties", .object(type.properties.map { .init($0.name, property($0, within: inner)) })))
        return .object(members)
    }

    private func property(_ property: Property, within outer: Set<String>) -> JSON {
        switch property.collection {
        case .none: element(property.type, isNullable: false, within: outer)
        case .list: ["bsonType": "array", "items": element(property.type, isNullable: property.isOptional, within: outer)]
        case .set:
            ["bsonType": "array", "uniqueItems": true, "items": element(property.type, isNullable: property.isOptional, within: outer)]
        case .dictionary:
            ["bsonType": "object", "additionalProperties": element(property.type, isNullable: property.isOptional, within: outer)]
        }
    }

    private func element(_ type: PropertyType, isNullable: Bool, within outer: Set<String>) -> JSON {
        let schema: JSON =
            if case .embedded(let name) = type, let inner = record.schema[name] {
                object(inner, within: outer)
            } else {
                ["bsonType": .string(word(type))]
            }
        guard isNullable else { return schema }
        return .object((schema.members ?? []).map { $0.key == "bsonType" ? .init("bsonType", [$0.value, "null"]) : $0 })
    }

    /// Returns the `bsonType` of a scalar, or of the key that a link is stored as.
    private func word(_ type: PropertyType) -> String {
        switch type {
        case .bool: "bool"
        case .int: "long"
        case .float: "float"
        case .double: "double"
        case .decimal: "decimal"
        case .string: "string"
        case .binary: "binData"
        case .timestamp: "date"
        case .objectId: "objectId"
        case .uuid: "uuid"
        case .mixed: "mixed"
        case .embedded: "object"
        case .link(let name): record.schema[name].flatMap { type in type.primaryKey.map { word(type.properties[$0].type) } } ?? "string"
        }
    }

    private func links(of type: ObjectType, at path: String, within outer: Set<String>) -> [JSON.Member] {
        guard !outer.contains(type.name) else { return [] }
        return type.properties.flatMap { property -> [JSON.Member] in
            let place = path + property.name
            switch property.type {
            case .link(let name):
                guard let table = record.tables[name] else { return [] }
                let ref = "#/relationship/\(source)/\(table.schema)/\(table.name)"
                return [
                    .init(place, ["ref": .string(ref), "foreign_key": "_id", "is_list": .bool(property.collection != .none)])
                ]
            case .embedded(let name):
                guard let inner = record.schema[name] else { return [] }
                let step = property.collection == .list ? ".[]." : "."
                return links(of: inner, at: place + step, within: outer.union([type.name]))
            default: return []
            }
        }
    }

    // MARK: Text

    /// Returns the JSON with a line for each member, for people.
    package static func text(_ json: JSON) -> String {
        var text = ""
        write(json, "", &text)
        return text + "\n"
    }

    private static func write(_ json: JSON, _ indent: String, _ text: inout String) {
        if let elements = json.array, elements.contains(where: { $0.members != nil }) { return write(elements, indent, &text) }
        // A short object without further objects fits on a line.
        guard let members = json.members, !members.isEmpty, members.contains(where: { $0.value.members != nil }) || members.count > 3 else {
            text += json.text
            return
        }
        let inner = indent + "    "
        text += "{\n"
        for (index, member) in members.enumerated() {
            text += "\(inner)\(JSON.string(member.key).text): "
            write(member.value, inner, &text)
            text += index == members.count - 1 ? "\n" : ",\n"
        }
        text += "\(indent)}"
    }

    /// Writes a list with a line for each object.
    private static func write(_ elements: [JSON], _ indent: String, _ text: inout String) {
        let inner = indent + "    "
        text += "[\n"
        for (index, element) in elements.enumerated() {
            text += inner
            write(element, inner, &text)
            text += index == elements.count - 1 ? "\n" : ",\n"
        }
        text += "\(indent)]"
    }
}
