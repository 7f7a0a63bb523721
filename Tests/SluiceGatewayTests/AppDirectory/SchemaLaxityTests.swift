import SluiceCore
import SluiceGateway
import Testing

/// Schemas that App Services accepted.
struct SchemaLaxityTests {
    private static let path = "data_sources/mongodb-atlas/shop/items/schema.json"

    /// The app with one more collection, `items`, whose class has these further members and properties.
    private static func app(_ properties: String, _ members: String = #""title": "Item","#) throws -> AppConfiguration {
        let text = #"{ \#(members) "bsonType": "object", "properties": { "_id": { "bsonType": "objectId" }, \#(properties) } }"#
        return try AppDirectory.read(files: AppFixture.adding(path, text))
    }

    /// A property's schema, and what is read: its type, or nil if the collection is left out.
    struct Case: Sendable, CustomTestStringConvertible {
        var schema: String
        var type: PropertyType?
        var collection = CollectionKind.none
        /// A piece of the note; nil for none.
        var note: String?
        var testDescription: String { schema }
    }

    static let cases: [Case] = [
        Case(schema: #"{ "bsonType": "boolean" }"#, type: .bool),
        Case(schema: #"{ "type": "boolean" }"#, type: .bool),
        Case(schema: #"{ "bsonType": "integer" }"#, type: .int),
        Case(schema: #"{ "bsonType": "string", "example": "x", "readOnly": true }"#, type: .string),
        Case(schema: #"{ "bsonType": "string", "uiHint": "x" }"#, type: .string, note: "'uiHint' is not a known key"),
        Case(schema: #"{ "bsonType": "string", "oneOf": [] }"#, type: .string, note: "'oneOf' of 'properties.x' is not checked"),
        Case(
            schema: #"{ "bsonType": "object", "properties": {}, "additionalProperties": { "bsonType": "int" } }"#, type: .int,
            collection: .dictionary),
        Case(
            schema: #"{ "bsonType": "object", "properties": { "y": { "bsonType": "int" } } }"#, type: .embedded("Item_x")),
        Case(
            schema: #"{ "bsonType": "array", "items": { "bsonType": "object", "properties": { "y": { "bsonType": "int" } } } }"#,
            type: .embedded("Item_x"), collection: .list),
        Case(schema: #"{ "bsonType": "number" }"#, note: "'number' of 'properties.x' is no type"),
        Case(schema: #"{ "bsonType": "timestamp" }"#, note: "Use 'date'."),
        Case(schema: #"{ "bsonType": "null" }"#, note: "'null' of"),
        Case(schema: #"{ "bsonType": "regex" }"#, note: "'regex' of"),
        Case(schema: #"{}"#, note: "has no bsonType"),
        Case(schema: #"{ "bsonType": ["int", "string"] }"#, note: "must be one type"),
        Case(schema: #"{ "bsonType": "array" }"#, note: "'items' is missing"),
        Case(schema: #"{ "bsonType": "array", "items": [{ "bsonType": "int" }] }"#, note: "must be one schema, not an array"),
        Case(schema: #"{ "bsonType": "object" }"#, note: "an object without properties"),
        Case(schema: #"{ "bsonType": "object", "properties": {} }"#, note: "an object without properties"),
        Case(
            schema: #"{ "bsonType": "object", "properties": { "y": { "bsonType": "number" } } }"#,
            note: "'number' of 'properties.x.properties.y'"),
    ]

    @Test(arguments: cases)
    func `is read as App Services did, or leaves out its collection only`(test: Case) throws {
        let app = try Self.app(#""x": \#(test.schema)"#)
        let notes = app.notes.filter { $0.file == Self.path }
        if let type = test.type {
            let property = try #require(app.schema["Item"]?["x"])
            #expect(property.type == type && property.collection == test.collection)
            #expect(app.tables["Item"] == .init(schema: "shop", name: "items"))
            #expect(
                notes.allSatisfy { $0.kind == .unused && $0.subject == "Item.x" } && notes.count == (test.note == nil ? 0 : 1), "\(notes)")
        } else {
            #expect(app.schema["Item"] == nil && app.schema["Item_x"] == nil && app.tables["Item"] == nil)
            #expect(notes.map(\.kind) == [.omitted] && notes.map(\.subject) == ["Item"], "\(notes)")
        }
        if let note = test.note { #expect(notes.contains { $0.description.contains(note) && $0.line == 1 }, "\(notes)") }
        // The other collections are served whatever happens here.
        #expect(app.schema["Order"] != nil && app.schema["Person"] != nil && app.schema["Reading"] != nil)
    }

    @Test func `a collection without a title is named as the collection, for the roles too`() throws {
        let app = try Self.app(#""x": { "bsonType": "int" }"#, "")
        #expect(app.schema["items"]?["x"]?.type == .int && app.tables["items"] == .init(schema: "shop", name: "items"))
        #expect(app.files[Self.path] == #"{"title":"items"}"#)
    }

    @Test func `objects without a title are named by their way from the class`() throws {
        let app = try Self.app(
            """
            "home": { "bsonType": "object", "properties": {
                "city": { "bsonType": "string" },
                "rooms": { "bsonType": "array", "items": { "bsonType": "object", "properties": { "size": { "bsonType": "int" } } } },
                "named": { "title": "Named", "bsonType": "object", "properties": {
                    "inner": { "bsonType": "object", "properties": { "z": { "bsonType": "int" } } } } } } },
            "homes": { "bsonType": "object", "additionalProperties": { "bsonType": "object", "properties": { "a": { "bsonType": "int" } } } }
            """)
        #expect(app.schema["Item"]?["home"]?.type == .embedded("Item_home"))
        #expect(app.schema["Item_home"]?["rooms"]?.type == .embedded("Item_home_rooms"))
        #expect(app.schema["Named"]?["inner"]?.type == .embedded("Named_inner"))
        #expect(app.schema["Item"]?["homes"]?.type == .embedded("Item_homes") && app.schema["Item"]?["homes"]?.collection == .dictionary)
        #expect(app.schema["Item_home_rooms"]?.kind == .embedded)
    }

    @Test func `a link to a collection that is left out is a key`() throws {
        var files = AppFixture.replacing(
            "\"_id\": { \"bsonType\": \"uuid\" }, ", with: "", in: "data_sources/mongodb-atlas/shop/people/schema.json")
        let app = try AppDirectory.read(files: files)
        #expect(app.schema["Person"] == nil && app.schema["Order"]?["buyer"]?.type == .uuid)
        #expect(app.schema["Line"]?["buyers"]?.type == .uuid)
        let notes = app.notes.filter { $0.file == AppFixture.orders("relationships") }
        #expect(notes.count == 2 && notes.allSatisfy { $0.message.contains("is a key and no link") && $0.line > 0 }, "\(notes)")
        #expect(notes.map(\.subject) == ["Order.buyer", "Order.lines.[].buyers"], "\(notes)")
        // A collection that nothing describes is a mistake as before.
        files["data_sources/mongodb-atlas/shop/people/schema.json"] = nil
        #expect(AppFixture.problems(of: files).count == 2)
    }
}
