import GatewayTestSupport
import SluiceCore
import Testing

/// Users' custom data that are objects of the app themselves.
@Suite(.timeLimit(.minutes(5))) struct `Custom data in a class of the app` {
    private static let custom = """
        {
            "enabled": true, "mongo_service_name": "postgres", "database_name": "public", "collection_name": "Member",
            "user_id_field": "owner_id"
        }
        """

    @Test func `decide what a user sees, and what is written to them applies to open sessions`() async throws {
        let member = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.text" }"#, write: "false")
        var files = NoteApp.files(["Note": "[\(member)]", "Member": "[\(NoteApp.role("all"))]"])
        files["auth/custom_user_data.json"] = Self.custom
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Member"])) { [files] deployment in
            try await deployment.run(files) { gateway in
                try await gateway.sql("INSERT INTO \"Note\" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')")
                let account = try await gateway.account()
                let session = try await gateway.noteSession(account, ["Note", "Member"])
                #expect(session.keys("Note").isEmpty)
                // The user joins a team by an object of the app.
                let joined = NoteApp.change(
                    "Member", "m", ["owner_id": .string(account.id), "team": .string("members"), "text": .string("red")], .create)
                #expect(try await !session.isRefused(1, joined))
                try await session.receive { $0.keys("Note") == ["r"] }
                try await gateway.sql("UPDATE \"Member\" SET text = 'blue'")
                try await session.receive { $0.keys("Note") == ["b"] }
                try await gateway.sql("DELETE FROM \"Member\"")
                try await session.receive { $0.keys("Note").isEmpty }
                #expect(session.error == nil)
            }
        }
    }

    /// A field of each type, what it has in objects of two teams, and the type of its column.
    private static let fields: [(name: String, bson: String, column: String, first: String, second: String)] = [
        ("masterId", #"{ "bsonType": "objectId" }"#, "sluice.objectid", "\(digits("a"))", "\(digits("b"))"),
        (
            "masterIds", #"{ "bsonType": "array", "items": { "bsonType": "objectId" } }"#, "sluice.objectid[]", "{\(digits("a"))}",
            "{\(digits("b"))}"
        ),
        ("tag", #"{ "bsonType": "uuid" }"#, "uuid", "01234567-89ab-cdef-0123-456789abcdef", "11234567-89ab-cdef-0123-456789abcdef"),
        ("day", #"{ "bsonType": "date" }"#, "timestamptz", "2026-03-01T12:30:00.25+02:00", "2026-03-02T12:30:00Z"),
        ("account", #"{ "bsonType": "decimal" }"#, "numeric", "12.50", "9007199254740993.1"),
        ("photo", #"{ "bsonType": "binData" }"#, "bytea", #"\x00ff"#, #"\x00fe"#),
        ("level", #"{ "bsonType": "long" }"#, "bigint", "9007199254740993", "3"),
        ("ratio", #"{ "bsonType": "double" }"#, "double precision", "0.1", "1e300"),
        ("open", #"{ "bsonType": "bool" }"#, "boolean", "true", "false"), ("word", #"{ "bsonType": "string" }"#, "text", "red", "blue"),
    ]

    private static func digits(_ digit: Character) -> String { String(repeating: digit, count: 24) }

    private static func className(_ field: String) -> String { "By\(field.prefix(1).uppercased())\(field.dropFirst())" }

    /// A class for each field, whose objects are seen by those whose custom data have the same; custom data are a class, too.
    private static var typedApp: (files: [String: String], tables: String) {
        let classes = fields.map { className($0.name) } + ["Member"]
        let properties =
            fields.map { #""\#($0.name)": \#($0.bson)"# } + [#""_id": { "bsonType": "string" }"#, #""owner_id": { "bsonType": "string" }"#]
        var files = NoteApp.files([:])
        let queryable = fields.map { "\"\($0.name)\"" }.joined(separator: ", ")
        files["sync/config.json"] = """
            {
                "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
                "queryable_fields_names": ["owner_id", \(queryable)]
            }
            """
        for (index, name) in classes.enumerated() {
            let field = index < fields.count ? fields[index].name : "owner_id"
            // The list is one of the user's against a single field, and one of the object's against a single value.
            let condition =
                switch field {
                case "masterId": #"{ "masterId": { "$in": "%%user.custom_data.masterIds" } }"#
                case "masterIds": #"{ "masterIds": "%%user.custom_data.masterId" }"#
                default: #"{ "\#(field)": "%%user.custom_data.\#(field)" }"#
                }
            files[ShopApp.table(name, "schema")] =
                #"{ "title": "\#(name)", "bsonType": "object", "required": ["_id"], "properties": { \#(properties.joined(separator: ", ")) } }"#
            files[ShopApp.table(name, "rules")] =
                #"{ "database": "public", "collection": "\#(name)", "roles": [\#(NoteApp.role("same", read: condition, write: "false"))] }"#
        }
        files["auth/custom_user_data.json"] = custom
        let columns = fields.map { "\"\($0.name)\" \($0.column)" }.joined(separator: ", ")
        let tables = classes.map { "CREATE TABLE \"\($0)\" (_id text PRIMARY KEY, owner_id text, \(columns));" }.joined()
        return (files, domain + tables)
    }

    private static let domain = """
        CREATE SCHEMA sluice; CREATE DOMAIN sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$');
        """

    @Test func `are compared with fields of every type`() async throws {
        let app = Self.typedApp
        let values = ["first": Self.fields.map(\.first), "second": Self.fields.map(\.second)]
            .mapValues { $0.map { "'\($0)'" }.joined(separator: ", ") }
        try await RunningGateway.deploy(app.tables) { deployment in
            try await deployment.run(app.files) { gateway in
                let classes = Self.fields.map { Self.className($0.name) }
                for name in classes {
                    for (key, values) in values { try await gateway.sql("INSERT INTO \"\(name)\" VALUES ('\(key)', NULL, \(values))") }
                }
                let account = try await gateway.account()
                let session = try await gateway.noteSession(account, classes)
                for name in classes { #expect(session.keys(name).isEmpty, "\(name)") }
                for (key, values) in values.sorted(by: { $0.key < $1.key }) {
                    try await gateway.sql(
                        "DELETE FROM \"Member\"; INSERT INTO \"Member\" VALUES ('m', '\(account.id)', \(values))")
                    try await session.receive { session in classes.allSatisfy { session.keys($0) == [key] } }
                }
                #expect(session.error == nil)
                // What the admin API sets has no types, and meets these fields by theirs.
                let plain = try await gateway.account(
                    customData: """
                        {
                            "masterId": "\(Self.digits("a"))", "masterIds": ["\(Self.digits("b"))", "x"], "day": "2026-03-01T10:30:00.250Z",
                            "tag": "01234567-89AB-CDEF-0123-456789ABCDEF", "account": "12.50", "level": 3
                        }
                        """)
                let seen = try await gateway.noteSession(plain, classes)
                #expect(seen.keys("ByMasterIds") == ["first"] && seen.keys("ByMasterId") == ["second"])
                #expect(seen.keys("ByDay") == ["first"] && seen.keys("ByTag") == ["first"] && seen.keys("ByLevel") == ["second"])
                for name in ["ByAccount", "ByPhoto", "ByRatio", "ByOpen", "ByWord"] { #expect(seen.keys(name).isEmpty, "\(name)") }
            }
        }
    }
}
