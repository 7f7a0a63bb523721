package import SluiceCore
package import SluiceValues

/// The app's schema as recorded in the database: classes, their tables, and the queryable fields.
package struct AppSchemaRecord: Hashable, Sendable {
    package var schema: Schema
    package var tables: [String: AppConfiguration.Table]
    package var fields: QueryableFields

    package init(schema: Schema, tables: [String: AppConfiguration.Table], fields: QueryableFields) {
        self.schema = schema
        self.tables = tables
        self.fields = fields
    }

    package init(_ app: AppConfiguration) { self.init(schema: app.schema, tables: app.tables, fields: app.queryableFields) }

    // MARK: JSON

    /// The record as JSON, with classes and properties in their order. The stored property numbers are not part of it.
    package var json: JSON {
        let types = schema.types.map { type in
            var members: [JSON.Member] = [.init("name", .string(type.name)), .init("kind", .string(type.kind.word))]
            if let key = type.primaryKey { members.append(.init("primary_key", .string(type.properties[key].name))) }
            if let table = tables[type.name] {
                members.append(.init("table", ["schema": .string(table.schema), "name": .string(table.name)]))
            }
            let columns = tables[type.name]?.columns ?? [:]
            members.append(.init("properties", .array(type.properties.map { Self.json($0, column: columns[$0.name]) })))
            return JSON.object(members)
        }
        return [
            "types": .array(types),
            "queryable": [
                "global": Self.names(fields.global),
                "types": .object(fields.byType.sorted { $0.key < $1.key }.map { .init($0.key, Self.names($0.value)) }),
                "indexed": fields.indexed.map { .string($0) } ?? .null,
            ],
        ]
    }

    private static func names(_ names: Set<String>) -> JSON { .array(names.sorted().map { .string($0) }) }

    private static func json(_ property: Property, column: String?) -> JSON {
        var members: [JSON.Member] = [.init("name", .string(property.name)), .init("type", .string(property.type.word))]
        if property.collection != .none { members.append(.init("collection", .string(property.collection.word))) }
        if property.isOptional { members.append(.init("optional", true)) }
        if let column { members.append(.init("column", .string(column))) }
        return .object(members)
    }

    /// - Throws: `configInvalid` if the JSON has a part that this release cannot read.
    package init(_ json: JSON) throws(SluiceError) {
        var types: [ObjectType] = []
        tables = [:]
        for type in json["types"]?.array ?? [] {
            guard let name = type["name"]?.string, let kind = type["kind"]?.string.flatMap(ObjectKind.init(word:)) else {
                throw Self.unreadable(type)
            }
            var properties: [Property] = []
            var columns: [String: String] = [:]
            for property in type["properties"]?.array ?? [] {
                let read = try Self.property(property, id: UInt32(properties.count + 1))
                properties.append(read)
                columns[read.name] = property["column"]?.string
            }
            types.append(ObjectType(name: name, kind: kind, properties: properties, primaryKey: type["primary_key"]?.string))
            if let schema = type["table"]?["schema"]?.string, let table = type["table"]?["name"]?.string {
                tables[name] = .init(schema: schema, name: table, columns: columns)
            }
        }
        schema = Schema(types)
        func names(_ json: JSON?) -> Set<String> { Set(json?.array?.compactMap(\.string) ?? []) }
        let queryable = json["queryable"]
        fields = QueryableFields(
            global: names(queryable?["global"]),
            byType: Dictionary((queryable?["types"]?.members ?? []).map { ($0.key, names($0.value)) }, uniquingKeysWith: { $1 }),
            indexed: queryable?["indexed"]?.string)
    }

    private static func property(_ json: JSON, id: UInt32) throws(SluiceError) -> Property {
        guard let name = json["name"]?.string, let type = json["type"]?.string.flatMap(PropertyType.init(word:)),
            let collection = CollectionKind(word: json["collection"]?.string ?? CollectionKind.none.word)
        else { throw unreadable(json) }
        return Property(id: id, name: name, type: type, collection: collection, isOptional: json["optional"]?.bool ?? false)
    }

    private static func unreadable(_ json: JSON) -> SluiceError {
        SluiceError(
            .configInvalid, "The recorded schema (sluice.app_schema) has a part that cannot be read: \(json.text.prefix(200)).",
            fix: "Run the release that wrote it.")
    }
}
