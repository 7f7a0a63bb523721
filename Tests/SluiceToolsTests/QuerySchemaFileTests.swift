import Foundation
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

struct QuerySchemaFileTests {
    private static func problems(_ text: String) -> [ConfigProblem] {
        do {
            _ = try QuerySchemaFile.read(text, file: "S.json")
            return []
        } catch {
            return error.problems
        }
    }

    @Test func `has the classes, embedded types, collections and links of its JSON schemas`() throws {
        let schema = try Kennel.schema()
        #expect(schema.types.map(\.name) == ["Dog", "Person", "Bark", "Address"])
        #expect(schema.types.map(\.kind) == [.topLevel, .topLevel, .asymmetric, .embedded])
        let dog = try #require(schema["Dog"])
        #expect(dog.primaryKey == 0)
        #expect(dog["owner"]?.type == .link(to: "Person"))
        #expect(dog["friends"]?.type == .link(to: "Dog"))
        #expect(dog["friends"]?.collection == .list)
        #expect(dog["marks"]?.collection == .set)
        #expect(dog["extra"]?.collection == .dictionary)
        #expect(dog["home"]?.type == .embedded("Address"))
        #expect(schema["Address"]?["keeper"]?.type == .link(to: "Person"))
        #expect(schema["Person"]?["chief"]?.type == .link(to: "Person"))
    }

    @Test func `takes a listed class without a key as an embedded one, wherever it stands`() throws {
        let inner = #"{"title": "Spot", "bsonType": "object", "properties": {"x": {"bsonType": "int"}}}"#
        let outer = """
            {"title": "Map", "bsonType": "object", "properties": {"_id": {"bsonType": "string"}, \
            "spot": {"bsonType": "object", "title": "Spot"}, "near": {"bsonType": "array", "items": {"bsonType": "object", "title": "Spot"}}}}
            """
        for classes in [[inner, outer], [outer, inner]] {
            let schema = try QuerySchemaFile.read(#"{"schemas": [\#(classes.joined(separator: ","))]}"#, file: "S.json")
            #expect(schema["Map"]?["spot"]?.type == .embedded("Spot"))
            #expect(schema["Spot"]?.kind == .embedded)
            #expect(schema["Spot"]?.properties.map(\.name) == ["x"])
        }
    }

    @Test func `names every problem with its place and a near name`() {
        let text = Kennel.schemaText.replacing(#""bsonType": "uuid""#, with: #""bsonType": "uid""#)
            .replacing(#""ref": "Person", "foreign_key": "_id", "is_list": false } }"#, with: #""ref": "Persn" } }"#)
        let problems = Self.problems(text)
        #expect(problems.map(\.place) == ["S.json:12:17", "S.json:41:32"], "\(problems)")
        #expect(problems.first?.fix == "Did you mean 'uuid'?")
        #expect(problems.last?.fix == "Did you mean 'Person'?")
    }

    @Test(arguments: [
        ("{", "S.json:1:2: This is not valid JSON"), ("[]", "must be an object, not an array"), ("{}", "'schemas' is missing"),
        (#"{"schemas": [], "relationship": {}}"#, "Did you mean 'relationships'?"),
        (#"{"schemas": [], "relationships": {"Cat": {}}}"#, "The class 'Cat' does not exist."),
        (#"{"schemas": [{"bsonType": "object"}]}"#, "without a class name"),
        (#"{"schemas": [], "asymmetric_tables": ["Cat"]}"#, "'Cat'"),
    ])
    func `says what is wrong with another file`(text: String, words: String) {
        let problems = Self.problems(text)
        #expect(!problems.isEmpty)
        #expect(problems.first?.description.contains(words) == true, "\(problems)")
    }

    @Test func `reads an app directory, with its queryable fields`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "query-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ path: String, _ text: String) throws {
            let file = folder.appending(path: path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        // An export of today has no app id there.
        try write("realm_config.json", #"{"name": "kennel"}"#)
        try write(
            "sync/config.json",
            #"{"type": "flexible", "queryable_fields_names": ["name", "city"], "indexed_queryable_fields_names": ["city"]}"#)
        try write(
            "data_sources/pg/public/dogs/schema.json",
            """
            {"title": "Dog", "bsonType": "object", "properties": {"_id": {"bsonType": "int"}, "name": {"bsonType": "string"},
             "city": {"bsonType": "string"}, "age": {"bsonType": "int"}}}
            """)
        let (schema, declared) = try QuerySchemaFile.load(at: folder.path)
        let tool = try QueryTool(schema: schema, declared: declared, type: "Dog")
        func code(_ query: String, queryable: [String]? = nil) throws -> ErrorCode? {
            let fields = try tool.fields(queryable: queryable, indexed: nil)
            do throws(SluiceError) { _ = try tool.check(query, fields) } catch { return error.code }
            return nil
        }
        #expect(try code("city == 'x' AND name == 'y'") == nil)
        #expect(try code("city == 'x' AND age > 3") == .queryNotQueryable)
        #expect(try code("name == 'y'") == .queryIndexedFieldMissing)
        #expect(try code("age > 3", queryable: ["age"]) == nil)
    }

    @Test func `says that there is no file`() {
        let error = #expect(throws: AppDirectoryError.self) { try QuerySchemaFile.load(at: "/nowhere/S.json") }
        #expect(error?.problems.first?.code == .configMissing)
        #expect(error?.description.contains("/nowhere/S.json") == true)
    }
}
