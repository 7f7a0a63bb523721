import SluiceCore
import SluicePostgres
import Testing

private let everything = ObjectType(
    name: "Every Thing",
    properties: [
        Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "bool", type: .bool), Property(id: 3, name: "int", type: .int),
        Property(id: 4, name: "float", type: .float), Property(id: 5, name: "double", type: .double),
        Property(id: 6, name: "decimal", type: .decimal), Property(id: 7, name: "string", type: .string),
        Property(id: 8, name: "binary", type: .binary), Property(id: 9, name: "date", type: .timestamp),
        Property(id: 10, name: "uuid", type: .uuid), Property(id: 11, name: "mixed", type: .mixed),
        Property(id: 12, name: "link", type: .link(to: "Every Thing")), Property(id: 13, name: "embedded", type: .embedded("Part")),
        Property(id: 14, name: "tags", type: .string, collection: .list), Property(id: 15, name: "ids", type: .objectId, collection: .set),
        Property(id: 16, name: "counts", type: .int, collection: .dictionary),
        Property(id: 17, name: "parts", type: .embedded("Part"), collection: .list),
        Property(id: 18, name: "maybe", type: .int, isOptional: true),
    ])
private let part = ObjectType(name: "Part", kind: .embedded, properties: [Property(id: 1, name: "n", type: .int)], primaryKey: nil)

private func item(_ properties: Property...) -> TableCatalog {
    let type = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int)] + properties)
    return TableCatalog(schema: Schema([type]))
}

@Suite struct `The settings of a server` {
    @Test func `that do not fit are named, with what is wanted`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let name = "sluice_ascii_\(UInt32.random(in: .min ... .max))"
            _ = try await connection.script("CREATE DATABASE \(name) ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
            let other = try await PostgresConnection.connect("\(try TestPostgres.conninfo()) dbname=\(name)")
            let failures = try await ServerSettings.check(other, slot: "none")
            await other.close()
            _ = try await connection.script("DROP DATABASE \(name)")
            let unfit = failures.first { $0.message.contains("server_encoding") }
            #expect(
                unfit?.code == .postgresSetting
                    && unfit?.message == "server_encoding is SQL_ASCII; wanted is UTF8 (a property of the database).")
        }
    }
}

@Suite struct `The table catalog` {
    @Test func `makes tables that it then finds fit, and changes nothing the second time`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let catalog = TableCatalog(schema: Schema([everything, part]), in: "app data")
            #expect(try await catalog.create(connection).count == 2)
            let misfits = try await catalog.check(connection).map(\.message)
            #expect(misfits == [])
            #expect(try await catalog.create(connection) == [])
            try await CompanionSchema.create(connection)
            #expect(try await catalog.plan(connection).statements == [#"ALTER TABLE "app data"."Every Thing" REPLICA IDENTITY FULL"#])
            try await catalog.apply(connection) { _ in }
            #expect(try await catalog.plan(connection).statements == [])
            let failure = await postgresFailure {
                try await connection.execute("INSERT INTO \"app data\".\"Every Thing\" (_id) VALUES ('no object id')")
            }
            #expect(failure?.sqlState == "23514")
        }
    }

    @Test func `adds columns for new properties, with zeros where they are required`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            _ = try await item().create(connection)
            try await connection.script("INSERT INTO \"Item\" VALUES (1)")
            let grown = item(
                Property(id: 2, name: "name", type: .string), Property(id: 3, name: "at", type: .timestamp),
                Property(id: 4, name: "id", type: .objectId), Property(id: 5, name: "note", type: .string, isOptional: true))
            #expect(try await grown.check(connection).count == 4)
            #expect(try await grown.create(connection).count == 1)
            try await grown.requireFit(connection)
            let row = try await connection.query("SELECT name, at, id, note FROM \"Item\"")
            #expect(row[0, 0] == "")
            #expect(row[0, 1] == "1970-01-01 00:00:00+00")
            #expect(row[0, 2] == String(repeating: "0", count: 24))
            #expect(row[0, 3] == nil)
        }
    }

    @Test func `names table, column, expected and found type of what does not fit`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let catalog = item(
                Property(id: 2, name: "name", type: .string), Property(id: 3, name: "at", type: .timestamp),
                Property(id: 4, name: "tags", type: .int, collection: .list), Property(id: 5, name: "twice", type: .int))
            let missing = try await catalog.check(connection)
            #expect(missing.map(\.code) == [.tableUnfit])
            #expect(missing[0].message.contains("public.Item"))
            try await connection.script(
                """
                CREATE TABLE "Item" (_id bigint, at time, tags bigint, twice text GENERATED ALWAYS AS ('x') STORED, extra box)
                """)
            let messages = try await catalog.check(connection).map(\.message)
            #expect(messages.count == 5)
            #expect(messages[0].contains("lacks the column “name”: expected text"))
            #expect(messages[1].contains("“at” of the wrong type: expected timestamp with time zone, found time without time zone"))
            #expect(messages[2].contains("“tags” of the wrong type: expected bigint[], found bigint"))
            #expect(messages[3].contains("“twice” of the wrong type: expected bigint, found text"))
            #expect(messages[4].contains("no primary key on the column “_id”"))
            let all = await postgresFailure { try await catalog.requireFit(connection) }
            #expect(all?.message.contains("“name”") == true)
            #expect(all?.message.contains("“tags”") == true)
        }
    }

    @Test func `accepts tables that other programs made, with other names and narrower types`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            try await connection.script(
                """
                CREATE SCHEMA shop; CREATE DOMAIN shop.name AS text;
                CREATE TABLE shop.items (item_id varchar(24) NOT NULL UNIQUE, title shop.name, n smallint, tags varchar(10)[], extra box)
                """)
            let type = ObjectType(
                name: "Item",
                properties: [
                    Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "name", type: .string),
                    Property(id: 3, name: "n", type: .int), Property(id: 4, name: "tags", type: .string, collection: .list),
                ])
            let mapping = TableMapping(type, schema: "shop", table: "items", columns: ["_id": "item_id", "name": "title"])
            #expect(try await TableCatalog(schema: Schema([type]), tables: [mapping]).check(connection).map(\.message) == [])
            try await connection.script("CREATE VIEW shop.view AS SELECT * FROM shop.items")
            let view = TableMapping(type, schema: "shop", table: "view", columns: ["_id": "item_id", "name": "title"])
            let failures = try await TableCatalog(schema: Schema([type]), tables: [view]).check(connection)
            #expect(failures.first?.message.contains("is not a table") == true)
        }
    }

    @Test(arguments: ["time", "time with time zone", "interval"]) func `refuses a key whose values have several texts`(
        type: String
    ) async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            try await connection.script("CREATE TABLE \"Item\" (_id \(type) PRIMARY KEY)")
            let item = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .string)])
            let messages = try await TableCatalog(schema: Schema([item])).check(connection).map(\.message)
            #expect(messages.count == 1 && messages.first?.contains("“_id” of the wrong type: expected text, found \(type)") == true)
        }
    }

    @Test func `makes a slot once and tells how far it is behind`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let names = ReplicationNames(app: "slot-\(UInt64.random(in: .min ... .max))")
            #expect(try await ReplicationSlot.state(connection, name: names.slot) == nil)
            let (state, isNew) = try await ReplicationSlot.ensure(connection, name: names.slot)
            #expect(isNew)
            #expect(!state.isActive && !state.isLost && state.confirmed != nil && state.status == "reserved")
            #expect(try await ReplicationSlot.ensure(connection, name: names.slot).isNew == false)
            try await connection.script("CREATE TABLE t AS SELECT generate_series(1, 10000)")
            let later = try #require(try await ReplicationSlot.state(connection, name: names.slot))
            #expect(later.bytesKept > state.bytesKept)
            #expect(try await ServerSettings.check(connection, slot: names.slot).map(\.message) == [])
            try await ReplicationSlot.drop(connection, name: names.slot)
            try await ReplicationSlot.drop(connection, name: names.slot)
        }
    }

    @Test func `gives apps slot names that PostgreSQL takes and that differ`() {
        #expect(ReplicationNames(app: "shop_1").slot == "sluice_shop_1")
        let names = ["shop-1", "Shop_1", "shop 1", String(repeating: "a", count: 80), String(repeating: "a", count: 81)].map {
            ReplicationNames(app: $0).slot
        }
        #expect(Set(names).count == 5)
        for name in names {
            #expect(name.count <= 63)
            #expect(name.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "_" })
        }
    }
}
