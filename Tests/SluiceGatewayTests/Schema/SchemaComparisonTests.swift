import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing

@Suite struct `A comparison of two schemas` {
    private static func record(
        _ properties: [Property] = [
            Property(id: 2, name: "size", type: .int), Property(id: 3, name: "note", type: .string, isOptional: true),
        ],
        key: PropertyType = .string, kind: ObjectKind = .topLevel, more: [ObjectType] = [], table: String = "items",
        columns: [String: String] = [:],
        fields: QueryableFields = QueryableFields(global: ["size"], indexed: "size")
    ) -> AppSchemaRecord {
        let type = ObjectType(name: "Item", kind: kind, properties: [Property(id: 1, name: "_id", type: key)] + properties)
        return AppSchemaRecord(
            schema: Schema([type] + more), tables: ["Item": .init(schema: "public", name: table, columns: columns)], fields: fields)
    }

    private static let size = Property(id: 2, name: "size", type: .int)
    private static let note = Property(id: 3, name: "note", type: .string, isOptional: true)
    private static let other = ObjectType(name: "Other", properties: [Property(id: 1, name: "_id", type: .int)])

    /// A class that takes the topic of users' events, and one of the same name that does not.
    private static let users = ObjectType(name: "users", properties: [Property(id: 1, name: "_id", type: .string)])
    private static let userReports = ObjectType(name: "users", kind: .asymmetric, properties: [Property(id: 1, name: "_id", type: .string)])

    private struct Case {
        var new: AppSchemaRecord
        /// What a breaking line begins with.
        var breaks: [String] = []
        var adds: [String] = []
        var retired: [String] = []
    }

    /// One for each row of the table of additive and breaking changes.
    private static let cases: [Case] = [
        Case(new: record()),
        Case(new: record(more: [other]), adds: ["class Other is new"]),
        Case(new: record(more: [users]), breaks: ["class users is new"]),
        Case(new: record(more: [userReports]), adds: ["class users is new"]),
        Case(
            new: record([size, note, Property(id: 4, name: "tags", type: .string, collection: .list)]),
            adds: ["property Item.tags is new (list of string)"]),
        Case(new: record([size, note, Property(id: 4, name: "rank", type: .int)]), adds: ["property Item.rank is new (int)"]),
        Case(new: record([note, size])),
        Case(new: record([size]), breaks: ["property Item.note is removed"], retired: ["Item.note"]),
        Case(
            new: record([size, Property(id: 3, name: "remark", type: .string, isOptional: true)]),
            breaks: ["property Item.note is removed"],
            adds: ["property Item.remark is new"], retired: ["Item.note"]),
        Case(
            new: record([Property(id: 2, name: "size", type: .double), note]), breaks: ["property Item.size is double, was int"],
            retired: ["Item.size"]),
        Case(
            new: record([Property(id: 2, name: "size", type: .int, collection: .list), note]),
            breaks: ["property Item.size is list of int, was int"], retired: ["Item.size"]),
        Case(
            new: record([size, Property(id: 3, name: "note", type: .string)]), breaks: ["property Item.note is required, was optional"]),
        Case(
            new: record([Property(id: 2, name: "size", type: .int, isOptional: true), note]),
            breaks: ["property Item.size is optional, was required"]),
        Case(new: record(key: .int), breaks: ["the primary key Item._id is int, was string"], retired: ["Item._id"]),
        Case(
            new: record(columns: ["note": "remark", "_id": "item_id"]),
            breaks: [
                "property Item._id is in the column “item_id”, was in “_id”", "property Item.note is in the column “remark”, was in “note”",
            ]),
        Case(
            new: record([size, note, Property(id: 4, name: "rank", type: .int)], columns: ["rank": "place"]),
            adds: ["property Item.rank is new (int)"]),
        Case(new: record(kind: .asymmetric), breaks: ["class Item is asymmetric, was top_level"]),
        Case(new: record(table: "things"), breaks: ["class Item is in the table public.things, was in public.items"]),
        Case(
            new: record(fields: QueryableFields(indexed: nil)),
            breaks: ["the indexed queryable field is none, was size", "Item.size is not queryable any more"]),
        Case(new: record(fields: QueryableFields(global: ["size", "note"], indexed: "size")), adds: ["Item.note is queryable"]),
        Case(
            new: AppSchemaRecord(schema: Schema([]), tables: [:], fields: QueryableFields(global: ["size"], indexed: "size")),
            breaks: ["class Item is removed"], retired: ["Item._id", "Item.note", "Item.size"]),
    ]

    @Test(arguments: cases.indices) func `tells what is added from what breaks, and names both`(_ index: Int) {
        let wanted = Self.cases[index]
        let comparison = SchemaComparison(from: Self.record(), to: wanted.new)
        let added = comparison.changes.filter { $0.breaks == nil }
        #expect(comparison.breaking.count == wanted.breaks.count && added.count == wanted.adds.count, "\(comparison.changes)")
        for (change, start) in zip(comparison.breaking, wanted.breaks) { #expect(change.text.hasPrefix(start)) }
        for (change, start) in zip(added, wanted.adds) { #expect(change.text.hasPrefix(start)) }
        #expect(comparison.retired.map { "\($0.type).\($0.property)" }.sorted() == wanted.retired)
        let refusal = comparison.refusal(version: 7)
        #expect((refusal == nil) == wanted.breaks.isEmpty)
        for start in wanted.breaks { #expect(refusal?.message.contains("\n  - \(start)") == true) }
    }

    @Test func `breaks nothing in a first schema, whichever classes it has`() {
        let none = AppSchemaRecord(schema: Schema([]), tables: [:], fields: QueryableFields())
        #expect(!SchemaComparison(from: none, to: Self.record(more: [Self.users], fields: QueryableFields())).isBreaking)
    }

    @Test func `names the topic of users' events when its class comes or goes`() {
        let (with, without) = (Self.record(more: [Self.users]), Self.record())
        #expect(SchemaComparison(from: without, to: with).breaking.first?.breaks?.contains("APP.user-events instead of APP.users") == true)
        #expect(SchemaComparison(from: with, to: without).breaking.first?.breaks?.contains("the topic APP.users again") == true)
    }

    @Test func `finds nothing in what was recorded and read again`() throws {
        let app = try ShopApp.configuration()
        let everything: [PropertyType] = [
            .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed, .link(to: "Every"),
            .embedded("Part"),
        ]
        let kinds: [CollectionKind] = [.none, .list, .set, .dictionary]
        var properties = [Property(id: 1, name: "_id", type: .uuid)]
        for type in everything {
            for kind in kinds {
                properties.append(
                    Property(
                        id: UInt32(properties.count + 1), name: "p\(properties.count)", type: type, collection: kind,
                        isOptional: properties.count % 2 == 0))
            }
        }
        let part = ObjectType(name: "Part", kind: .embedded, properties: [Property(id: 1, name: "n", type: .int)], primaryKey: nil)
        let every = AppSchemaRecord(
            schema: Schema([ObjectType(name: "Every", properties: properties), part]),
            tables: ["Every": .init(schema: "a b", name: "c\"d")],
            fields: QueryableFields(global: ["p1"], byType: ["Every": ["p3"]], indexed: "p5"))
        for record in [AppSchemaRecord(app), every, Self.record()] {
            let read = try AppSchemaRecord(try JSON.parse(record.json.text))
            #expect(read == record)
            #expect(SchemaComparison(from: record, to: read).changes.isEmpty)
        }
        let broken = #expect(throws: SluiceError.self) { try AppSchemaRecord(["types": [["name": "A", "kind": "strange"]]]) }
        #expect(broken?.code == .configInvalid)
    }
}
