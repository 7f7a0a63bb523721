import SluiceCore
import SluiceGateway
import TestSupport
import Testing

/// Classes written as files of an app directory, and read again.
struct SchemaFilesTests {
    private static let scalars: [PropertyType] = [
        .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed,
    ]

    private static func property(
        _ id: Int, _ random: inout SplitMix64, links: [String], embedded: [String]
    ) -> Property {
        let collection: CollectionKind = [.none, .none, .list, .set, .dictionary].randomElement(using: &random) ?? .none
        var type = scalars.randomElement(using: &random) ?? .int
        switch Int.random(in: 0..<4, using: &random) {
        case 0: if let name = links.randomElement(using: &random) { type = .link(to: name) }
        case 1 where collection != .set: if let name = embedded.randomElement(using: &random) { type = .embedded(name) }
        default: break
        }
        var isOptional = Bool.random(using: &random)
        switch (type, collection) {
        // A link and a mixed value can always be null, but not as an element.
        case (.link, .none), (.mixed, .none): isOptional = true
        case (.mixed, _): isOptional = false
        default: break
        }
        return Property(id: UInt32(id), name: "p\(id)", type: type, collection: collection, isOptional: isOptional)
    }

    /// Three classes with links to each other, and embedded classes of which each may contain the later ones and itself.
    private static func schema(_ random: inout SplitMix64) -> Schema {
        let (tops, inner) = (["Alpha", "Beta", "Gamma"], ["Inner0", "Inner1", "Inner2"])
        var types = tops.enumerated().map { number, name in
            let key: PropertyType = [.string, .int, .objectId, .uuid].randomElement(using: &random) ?? .string
            var properties = [Property(id: 1, name: "_id", type: key, collection: .none, isOptional: false)]
            for id in 2..<8 { properties.append(property(id, &random, links: tops.dropLast(), embedded: inner)) }
            return ObjectType(
                name: name, kind: number == 2 ? .asymmetric : .topLevel, properties: properties, primaryKey: "_id")
        }
        for (number, name) in inner.enumerated() {
            let deeper = Array(inner[number...])
            let properties = (1..<5).map { property($0, &random, links: tops.dropLast(), embedded: deeper) }
            types.append(ObjectType(name: name, kind: .embedded, properties: properties, primaryKey: nil))
        }
        return Schema(types)
    }

    @Test func `are the same classes`() throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let schema = Self.schema(&random)
            let tables = Dictionary(
                uniqueKeysWithValues: schema.types.filter { $0.kind != .embedded }.map {
                    ($0.name, AppConfiguration.Table(schema: "shop", name: $0.name.lowercased()))
                })
            let fields = QueryableFields(byType: ["Alpha": ["_id"]])
            let writer = SchemaFiles(AppSchemaRecord(schema: schema, tables: tables, fields: fields), source: "main")
            var files = ["realm_config.json": #"{ "app_id": "x" }"#, "sync/config.json": writer.sync]
            for type in schema.types { files.merge(writer.files(of: type.name)) { $1 } }
            let read = try AppDirectory.read(files: files)
            let used = schema.types.filter { read.schema[$0.name] != nil }
            #expect(Set(used.map(\.name)).isSuperset(of: ["Alpha", "Beta", "Gamma"]), "seed \(seed)")
            for type in used { #expect(read.schema[type.name] == type, "seed \(seed): \(files)") }
            #expect(read.schema.types.count == used.count && read.tables == tables && read.queryableFields == fields, "seed \(seed)")
            #expect(read.notes.allSatisfy { $0.kind == .missing }, "seed \(seed): \(read.notes)")
        }
    }

    @Test func `have a line for each property`() {
        let type = ObjectType(
            name: "Item",
            properties: [
                Property(id: 1, name: "_id", type: .objectId, collection: .none, isOptional: false),
                Property(id: 2, name: "name", type: .string, collection: .none, isOptional: true),
            ])
        let record = AppSchemaRecord(
            schema: Schema([type]), tables: ["Item": .init(schema: "todo", name: "Item")], fields: QueryableFields())
        #expect(
            SchemaFiles(record, source: "m").files(of: "Item") == [
                "data_sources/m/todo/Item/schema.json": """
                {
                    "title": "Item",
                    "bsonType": "object",
                    "required": ["_id"],
                    "properties": {
                        "_id": {"bsonType":"objectId"},
                        "name": {"bsonType":"string"}
                    }
                }

                """
            ])
    }
}
