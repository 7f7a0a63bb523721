import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import Testing

/// A client whose model has less of a class than the server.
@Suite(.timeLimit(.minutes(5))) struct `A client that knows a part of a class` {
    /// Of each kind that a class may have one that is required and one that is not, and each collection.
    private static let kinds = ["bool", "long", "double", "decimal", "string", "date", "objectId", "uuid", "binData"]

    private static var files: [String: String] {
        let scalars = kinds.flatMap { kind in
            [#""\#(kind)Field": { "bsonType": "\#(kind)" }"#, #""\#(kind)Option": { "bsonType": "\#(kind)" }"#]
        }
        let others = [
            #""anyOption": { "bsonType": "mixed" }"#, #""list": { "bsonType": "array", "items": { "bsonType": "long" } }"#,
            #""members": { "bsonType": "array", "uniqueItems": true, "items": { "bsonType": "string" } }"#,
            #""pairs": { "bsonType": "object", "additionalProperties": { "bsonType": "long" } }"#,
            #""inner": { "title": "Inner", "bsonType": "object", "properties": { "x": { "bsonType": "long" } } }"#,
        ]
        let required = (["_id"] + kinds.map { "\($0)Field" }).map { "\"\($0)\"" }.joined(separator: ", ")
        var files = ShopApp.files
        files[ShopApp.table("Everything", "schema")] = """
            {
                "title": "Everything", "bsonType": "object", "required": [\(required)],
                "properties": { "_id": { "bsonType": "string" }, \((scalars + others).joined(separator: ", ")) }
            }
            """
        files[ShopApp.table("Everything", "rules")] = files[ShopApp.table("tags", "rules")]?.replacing("\"tags\"", with: "\"Everything\"")
        return files
    }

    @Test func `Scenario 43: makes objects whose other fields are zero where they are required, and null or empty elsewhere`() async throws
    {
        let files = Self.files
        let type = try #require(try AppDirectory.read(files: files).schema["Everything"])
        let scalars = type.properties.filter { $0.isRequired && $0.collection == .none && $0.name != "_id" }
        try #require(scalars.count == Self.kinds.count && Set(scalars.map(\.typeText)).count == Self.kinds.count)
        try await RunningGateway.deploy { deployment in
            let connection = try await PostgresConnection.connect(deployment.conninfo)
            _ = try await TableCatalog(
                schema: Schema(try AppDirectory.read(files: files).schema.types.filter { ["Everything", "Inner"].contains($0.name) })
            )
            .create(connection)
            try await deployment.run(files) { gateway in
                let whole = try await gateway.openSession(["Everything"])
                try await whole.subscribe(1, [("Everything", "TRUEPREDICATE")])
                let part = try await gateway.session(token: try await gateway.anonymousToken())
                try await part.hello(
                    Schema([
                        ObjectType(
                            name: "Everything",
                            properties: [
                                Property(id: 1, name: "_id", type: .string),
                                Property(id: 2, name: "stringOption", type: .string, isOptional: true),
                            ])
                    ]))
                try await part.subscribe(1, [("Everything", "TRUEPREDICATE")])
                let object = ObjectKey(type: "Everything", key: .string("new"))
                try await part.upload(1, [ObjectChange(object: object, kind: .create, values: ["stringOption": .string("given")])])
                try await whole.receive { !$0.keys("Everything").isEmpty }
                let row = try #require(whole.rows["Everything"]?[.string("new")])
                for property in type.properties where property.name != "_id" {
                    let expected = property.name == "stringOption" ? Value.string("given") : property.emptyValue
                    #expect(row[property.name] == expected, "\(property.name)")
                }
                // By what SQL knows of each kind, not by what we call empty.
                let zeros = """
                    "boolField" = false AND "longField" = 0 AND "doubleField" = 0 AND "decimalField" = 0 AND "stringField" = ''
                    AND "dateField" = timestamptz '1970-01-01 00:00:00+00' AND "objectIdField" = repeat('0', 24)
                    AND "uuidField" = '00000000-0000-0000-0000-000000000000' AND "binDataField" = '\\x'
                    """
                #expect(try await gateway.count(#"SELECT count(*) FROM "Everything" WHERE \#(zeros)"#) == 1)
                // What it does not know of others' objects stays.
                try await gateway.sql(#"UPDATE "Everything" SET "longField" = 7, list = '{1,2}', "inner" = '{"x": 3}'"#)
                try await whole.receive { $0.rows["Everything"]?[.string("new")]?["longField"] == .int(7) }
                try await part.upload(2, [ObjectChange(object: object, kind: .set, values: ["stringOption": .string("again")])])
                try await whole.receive { $0.rows["Everything"]?[.string("new")]?["stringOption"] == .string("again") }
                let kept =
                    #"SELECT count(*) FROM "Everything" WHERE "longField" = 7 AND list = '{1,2}' AND "inner"->>'x' = '3' AND "boolField" = false"#
                #expect(try await gateway.count(kept) == 1 && part.compensations.isEmpty)
                part.close()
                whole.close()
            }
            await connection.close()
        }
    }

    @Test func `Scenario 43: makes embedded objects whose other required fields are zero`() async throws {
        var files = Self.files
        files[ShopApp.table("Everything", "schema")] = """
            {
                "title": "Everything", "bsonType": "object", "required": ["_id"],
                "properties": {
                    "_id": { "bsonType": "string" },
                    "inner": \(Self.inner), "inners": { "bsonType": "array", "items": \(Self.inner) }
                }
            }
            """
        try await RunningGateway.deploy(
            #"CREATE TABLE "Everything" (_id text PRIMARY KEY, "inner" jsonb, inners jsonb); "# + ShopApp.tables
        ) { [files] in
            try await $0.run(files) { gateway in
                let whole = try await gateway.openSession(["Everything"])
                let part = try await gateway.session(token: try await gateway.anonymousToken())
                try await part.hello(Self.less)
                for session in [whole, part] { try await session.subscribe(1, [("Everything", "TRUEPREDICATE")]) }
                let object = ObjectKey(type: "Everything", key: .string("new"))
                let core = Value.dictionary(["deep": .int(3)])
                let given = Value.dictionary(["x": .int(1), "core": core])
                let base = part.applied
                try await part.upload(1, [ObjectChange(object: object, kind: .create, values: ["inner": given, "inners": .list([given])])])
                for session in [whole, part] { try await session.receive { $0.keys("Everything") == ["new"] } }
                let filled = Value.dictionary([
                    "x": .int(1), "y": .int(0), "core": .dictionary(["deep": .int(3), "label": .string("")]),
                ])
                let row = try #require(whole.rows["Everything"]?[.string("new")])
                #expect(row["inner"] == filled && row["inners"] == .list([filled]))
                // Its maker calls the element by what it was before it has heard of what was filled.
                let nine = Edit("inners", [.element(.listed(0, ValueHash(given))), .key("x")], .set(.int(9)))
                try await part.upload(2, [ObjectChange(object: object, kind: .set, edits: [nine])], base: base)
                try await part.receive { $0.acknowledged == 2 }
                let changed = #"SELECT count(*) FROM "Everything" WHERE inners @> '[{"x": 9, "y": 0, "core": {"deep": 3, "label": ""}}]'"#
                #expect(try await gateway.count(changed) == 1)
                // Everything beats what nobody wrote, and what others wrote stays.
                let fives = Edit("inner", [.key("y")], .set(.int(5), isDefault: true))
                try await whole.upload(1, [ObjectChange(object: object, kind: .set, edits: [fives])])
                try await whole.receive { $0.acknowledged == 1 }
                try await part.upload(3, [ObjectChange(object: object, kind: .set, values: ["inner": .dictionary(["x": .int(2)])])])
                try await part.receive { $0.acknowledged == 3 }
                let kept = #"SELECT count(*) FROM "Everything" WHERE "inner" @> '{"x": 2, "y": 5, "core": {"deep": 3, "label": ""}}'"#
                #expect(try await gateway.count(kept) == 1 && part.compensations.isEmpty && whole.compensations.isEmpty)
                #expect(try await gateway.count("SELECT count(*) FROM sluice.quarantine") == 0)
                for session in [whole, part] { session.close() }
            }
        }
    }

    private static let inner = """
        {
            "title": "Inner", "bsonType": "object", "required": ["x", "y"],
            "properties": {
                "x": { "bsonType": "long" }, "y": { "bsonType": "long" },
                "core": {
                    "title": "Core", "bsonType": "object", "required": ["label"],
                    "properties": { "deep": { "bsonType": "long" }, "label": { "bsonType": "string" } }
                }
            }
        }
        """

    /// The same without what is filled.
    private static let less = Schema([
        ObjectType(
            name: "Everything",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "inner", type: .embedded("Inner"), isOptional: true),
                Property(id: 3, name: "inners", type: .embedded("Inner"), collection: .list),
            ]),
        ObjectType(
            name: "Inner", kind: .embedded,
            properties: [
                Property(id: 1, name: "x", type: .int), Property(id: 2, name: "core", type: .embedded("Core"), isOptional: true),
            ], primaryKey: nil),
        ObjectType(
            name: "Core", kind: .embedded, properties: [Property(id: 1, name: "deep", type: .int, isOptional: true)], primaryKey: nil),
    ])
}
