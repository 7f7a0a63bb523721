import SluiceCore
import SluiceGateway
import Testing

/// The line that says what an edit of the app directory has changed.
struct AppChangesTests {
    private static let rules = """
        { "roles": [
            { "name": "owner", "apply_when": {}, "document_filters": { "read": true, "write": { "owner": "%%user.id" } }, "read": true },
            { "name": "guest", "apply_when": {}, "document_filters": { "read": true, "write": false }, "read": true } ] }
        """

    private static let swapped = """
        { "roles": [
            { "name": "guest", "apply_when": {}, "document_filters": { "read": true, "write": false }, "read": true },
            { "name": "owner", "apply_when": {}, "document_filters": { "read": true, "write": { "owner": "%%user.id" } }, "read": true } ] }
        """

    private static let plain = [
        "realm_config.json": #"{ "app_id": "a", "name": "a" }"#,
        "sync/config.json": #"{ "type": "flexible", "state": "enabled", "queryable_fields_names": ["owner"] }"#,
        "data_sources/m/config.json": #"{ "name": "m", "type": "mongodb-atlas" }"#,
        "data_sources/m/shop/items/schema.json": """
        { "title": "Item", "bsonType": "object", "required": ["_id"],
          "properties": { "_id": { "bsonType": "string" }, "owner": { "bsonType": "string" }, "size": { "bsonType": "long" } } }
        """,
        "data_sources/m/shop/items/rules.json": rules,
        "values/limit.json": #"{ "name": "limit", "value": 3, "from_secret": false }"#,
    ]

    private static func changes(_ edit: [String: String?], growsSchema: Bool = true) throws -> AppChanges {
        var files = plain
        for (path, text) in edit { files[path] = text }
        return AppChanges(from: try AppDirectory.read(files: plain), to: try AppDirectory.read(files: files), growsSchema: growsSchema)
    }

    private static func rules(_ old: String, _ new: String) -> [String: String?] {
        ["data_sources/m/shop/items/rules.json": rules.replacing(old, with: new)]
    }

    static let cases: [(edit: [String: String?], texts: [String])] = [
        ([:], []),
        (rules(#""write": false }"#, #""write": true }"#), ["role guest of class Item changed"]),
        (rules(#""name": "guest""#, #""name": "visitor""#), ["role guest of class Item removed", "role visitor of class Item added"]),
        (["data_sources/m/shop/items/rules.json": swapped], ["the order of the roles of class Item changed"]),
        (["data_sources/m/shop/items/rules.json": String?.none], ["role owner of class Item removed", "role guest of class Item removed"]),
        (
            ["data_sources/m/default_rule.json": #"{ "roles": [{ "name": "all", "apply_when": {}, "read": true }] }"#],
            ["role all of the default rule added"]
        ),
        (["values/limit.json": #"{ "name": "limit", "value": 4, "from_secret": false }"#], ["values/limit.json changed"]),
        (["values/more.json": #"{ "name": "more", "value": 4, "from_secret": false }"#], ["values/more.json added"]),
        (
            ["sync/config.json": #"{ "type": "flexible", "state": "enabled", "queryable_fields_names": ["owner", "size"] }"#],
            ["Item.size is queryable"]
        ),
        (
            ["sync/config.json": #"{ "type": "flexible", "state": "disabled", "queryable_fields_names": ["owner"] }"#],
            ["sync/config.json changed (takes effect after a restart)"]
        ),
        (
            [
                "data_sources/m/shop/notes/schema.json":
                    #"{ "title": "Note", "bsonType": "object", "required": ["_id"], "properties": { "_id": { "bsonType": "string" } } }"#
            ], ["class Note is new (top_level, 1 properties)"]
        ),
    ]

    @Test(arguments: cases.indices) func `each edit is named`(index: Int) throws {
        let (edit, texts) = Self.cases[index]
        #expect(try Self.changes(edit).texts == texts)
    }

    @Test func `a line has five changes and the number of others`() throws {
        var edit: [String: String?] = [:]
        for number in 1...7 { edit["values/v\(number).json"] = #"{ "name": "v\#(number)", "value": 1, "from_secret": false }"# }
        let changes = try Self.changes(edit)
        #expect(changes.texts.count == 7 && changes.line.hasSuffix("; values/v5.json added; and 2 more") && !changes.line.contains("\n"))
        #expect(try Self.changes([:]).line == "a plugin's file changed")
    }

    @Test func `a gateway that does not grow says what brings a class into use`() throws {
        let edit = ["sync/config.json": #"{ "type": "flexible", "state": "enabled", "queryable_fields_names": ["owner", "size"] }"#]
        #expect(try Self.changes(edit, growsSchema: false).texts == ["Item.size is queryable (not in use: run sluice schema apply)"])
    }
}
