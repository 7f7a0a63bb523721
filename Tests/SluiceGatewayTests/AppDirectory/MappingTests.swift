import SluiceCore
import SluiceGateway
import SluiceValues
import TestSupport
import Testing

/// The columns of properties, as `schema.json` names them.
struct MappingTests {
    private static let schema = AppFixture.orders("schema")

    /// A mapping at the end of the schema of orders, in its line 22.
    private static func mapping(_ text: String) -> [String: String] {
        AppFixture.replacing(
            "{ \"bsonType\": \"mixed\" }\n    }", with: "{ \"bsonType\": \"mixed\" }\n    },\n    \"mapping\": \(text)", in: schema)
    }

    @Test func `are those of the entries, and else have the name of the property`() throws {
        let text = #"{ "_id": "order_id", "owner": "Owner \"of\" it", "store": "store", "total": "buyer", "buyer": "total" }"#
        let app = try AppDirectory.read(files: Self.mapping(text))
        let table = try #require(app.tables["Order"])
        #expect(table.columns == ["_id": "order_id", "owner": "Owner \"of\" it", "total": "buyer", "buyer": "total"])
        #expect(table.column(of: "tags") == "tags" && table.column(of: "_id") == "order_id")
        #expect(app.notes == (try AppDirectory.read(files: AppFixture.files)).notes)
        #expect(app.schema == (try AppDirectory.read(files: AppFixture.files)).schema)
    }

    private struct Mistake {
        var mapping: String
        var message: String
        var fix: String
    }

    private static let mistakes = [
        Mistake(mapping: #"{ "ownr": "x" }"#, message: "'ownr' is not a property of the class", fix: "Did you mean 'owner'?"),
        Mistake(mapping: #"{ "owner": 7 }"#, message: "must be a text", fix: ""),
        Mistake(mapping: #"["owner"]"#, message: "'mapping' must be an object, not an array", fix: #"{"PROPERTY": "column"}"#),
        Mistake(mapping: #"{ "owner": "" }"#, message: "it has 0 bytes", fix: "1 to 63"),
        Mistake(mapping: #"{ "owner": "\#(String(repeating: "ä", count: 32))" }"#, message: "it has 64 bytes", fix: "1 to 63"),
        Mistake(mapping: #"{ "owner": "a\u0000b" }"#, message: "is not a name of a column", fix: "without NUL"),
        Mistake(mapping: #"{ "owner": "ctid" }"#, message: "'ctid' is a system column", fix: "a column of the table"),
        Mistake(mapping: #"{ "owner": "x", "store": "x" }"#, message: "'store' and 'owner' have the same column 'x'", fix: "of its own"),
        Mistake(mapping: #"{ "owner": "store" }"#, message: "'store' and 'owner' have the same column 'store'", fix: "of its own"),
        Mistake(mapping: #"{ "store": "owner" }"#, message: "'store' and 'owner' have the same column 'owner'", fix: "of its own"),
    ]

    @Test(arguments: mistakes.indices) func `are refused with the line and what to write`(_ index: Int) {
        let mistake = Self.mistakes[index]
        let problems = AppFixture.problems(of: Self.mapping(mistake.mapping))
        let found = problems.first { $0.message.contains(mistake.message) }
        #expect(found?.file == Self.schema && found?.line == 22, "\(problems)")
        #expect(found?.fix.contains(mistake.fix) == true, "\(problems)")
        #expect(found?.code == .configInvalid)
    }

    @Test func `are refused inside an embedded object`() {
        let files = AppFixture.replacing(
            "{ \"title\": \"Address\", \"bsonType\": \"object\", ",
            with: "{ \"title\": \"Address\", \"bsonType\": \"object\", \"mapping\": { \"city\": \"town\" }, ", in: Self.schema)
        let problems = AppFixture.problems(of: files)
        #expect(
            problems.contains { $0.message.contains("'properties.address' is an embedded object, which has no columns") }, "\(problems)")
    }

    @Test func `have no effect on other keywords, and a misspelt one is noted`() throws {
        let files = AppFixture.replacing("\"title\": \"Order\",", with: "\"title\": \"Order\", \"maping\": {},", in: Self.schema)
        let app = try AppDirectory.read(files: files)
        #expect(app.notes.contains { $0.message.contains("'maping' is not a known key") && $0.fix.contains("'mapping'") }, "\(app.notes)")
    }

    @Test func `are in the recorded schema and in written files, and are read again`() throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        let names = ["a", "b", "c", "d", "the \"e\"", "É", "_f"]
        for _ in 0..<200 {
            let used = Array(names.shuffled(using: &random).prefix(Int.random(in: 1...names.count, using: &random)))
            let properties = ["_id"] + used
            // A permutation and new names: no two properties have one column.
            let pool = (properties + ["x1", "x2", "sp ace", "ctidy", "\\"]).shuffled(using: &random)
            let columns = Dictionary(uniqueKeysWithValues: zip(properties, pool)).filter { $0.key != $0.value }
            let type = ObjectType(
                name: "Thing",
                properties: properties.enumerated().map { Property(id: UInt32($0 + 1), name: $1, type: .string, isOptional: $1 != "_id") })
            let record = AppSchemaRecord(
                schema: Schema([type]), tables: ["Thing": .init(schema: "s", name: "things", columns: columns)], fields: QueryableFields())
            #expect(try AppSchemaRecord(try JSON.parse(record.json.text)) == record, "seed \(seed)")
            let writer = SchemaFiles(record, source: "main")
            var files = ["realm_config.json": #"{ "app_id": "x" }"#, "sync/config.json": writer.sync]
            files.merge(writer.files(of: "Thing")) { $1 }
            #expect(try AppDirectory.read(files: files).tables == record.tables, "seed \(seed): \(files)")
        }
    }
}
