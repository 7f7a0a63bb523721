import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Schemas of an app directory that change, against PostgreSQL and gateways that run.
@Suite(.timeLimit(.minutes(5))) struct `Changes of the schema` {
    private static let orders = ShopApp.table("orders", "schema")

    /// The orders' schema with something else in place of `secret`, which no device of these tests knows.
    private static func orders(_ properties: String, required: String = #""_id", "store", "size""#) -> [String: String] {
        [
            orders: """
            {
                "title": "Order", "bsonType": "object", "required": [\(required)],
                "properties": {
                    "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "title": { "bsonType": "string" },
                    \(properties)
                }
            }
            """
        ]
    }

    private static let same = #""size": { "bsonType": "long" }, "secret": { "bsonType": "string" }"#
    private static let grown = orders(same + #", "note": { "bsonType": "string" }"#)

    private static func tool(_ conninfo: String, _ files: [String: String] = [:]) throws -> SchemaTool {
        SchemaTool(app: try ShopApp.configuration(files: files), postgres: conninfo)
    }

    private static func count(_ conninfo: String, _ sql: String) async throws -> Int64? {
        let connection = try await PostgresConnection.connect(conninfo)
        let count = try await connection.query(sql).int(0, 0)
        await connection.close()
        return count
    }

    @Test func `are shown as the statements that would be run, and nothing is changed before they are applied`() async throws {
        try await GatewayDatabase.with { conninfo in
            let first = try await Self.tool(conninfo).diff()
            #expect(first.version == 0 && first.unfit.isEmpty && first.comparison.changes.allSatisfy { $0.breaks == nil })
            #expect(first.statements.contains { $0.hasPrefix(#"CREATE TABLE "public"."orders" ("_id" text COLLATE "C" NOT NULL, "#) })
            #expect(first.statements.contains(#"ALTER TABLE "public"."orders" REPLICA IDENTITY FULL"#))
            #expect(!first.statements.contains { $0.contains("readings") && $0.contains("IDENTITY") }, "nobody reads an asymmetric table")
            #expect(try await Self.count(conninfo, "SELECT count(*) FROM pg_class WHERE relname IN ('orders', 'app_schema')") == 0)
            // What it prints is what psql can run.
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(first.text)
            await connection.close()
            #expect(try await Self.tool(conninfo).diff().statements.isEmpty)
            #expect(try await Self.tool(conninfo).apply(acceptsBreaking: false).applied == 1)
            let again = try await Self.tool(conninfo).apply(acceptsBreaking: false)
            #expect(again.applied == nil && again.text.contains("Nothing changes"))
            let grown = try await Self.tool(conninfo, Self.grown).diff()
            #expect(grown.version == 1 && grown.comparison.changes.map(\.text) == ["property Order.note is new (string or null)"])
            #expect(grown.statements == [#"ALTER TABLE "public"."orders" ADD COLUMN "note" text COLLATE "C""#])
            #expect(grown.json["statements"]?.array?.count == 1 && grown.json["changes"]?.array?.first?["breaks"] == .null)
        }
    }

    @Test func `include the table of custom user data, in a JSON column if it has no class`() async throws {
        let custom = """
            { "enabled": true, "mongo_service_name": "postgres", "database_name": "people", "collection_name": "profiles", "user_id_field": "userId" }
            """
        try await GatewayDatabase.with { conninfo in
            let files = ["auth/custom_user_data.json": custom]
            #expect(try await Self.tool(conninfo).apply(acceptsBreaking: false).customData.isEmpty)
            let found = try await Self.tool(conninfo, files).diff()
            #expect(found.customData.count == 2 && found.statements.isEmpty && found.refusal(isBreakingAccepted: false) == nil)
            #expect(
                found.text.hasSuffix(found.customData.map { "\($0);" }.joined(separator: "\n")) && !found.text.contains("Nothing changes"))
            #expect(found.json["statements"]?.array?.count == 2)
            #expect(try await Self.tool(conninfo, files).apply(acceptsBreaking: false).customData == found.customData)
            #expect(try await Self.count(conninfo, "SELECT count(*) FROM people.profiles") == 0)
            #expect(try await Self.tool(conninfo, files).diff().text.contains("Nothing changes"))
            // The class of the collection has the column.
            let orders = custom.replacing("people", with: "public").replacing("profiles", with: "orders").replacing("userId", with: "store")
            #expect(try await Self.tool(conninfo, ["auth/custom_user_data.json": orders]).diff().customData.isEmpty)
            let absent = try await Self.tool(conninfo, ["auth/custom_user_data.json": orders.replacing("\"store\"", with: "\"user\"")])
                .diff()
            #expect(absent.customData == [#"ALTER TABLE "public"."orders" ADD COLUMN "user" text COLLATE "C" UNIQUE"#])
        }
    }

    @Test func `that break are listed by the tool and refused by a gateway with the same list`() async throws {
        let broken = Self.orders(
            #""size": { "bsonType": "double" }, "note": { "bsonType": "string" }"#, required: #""_id", "store", "size", "title""#)
        let lines = [
            "property Order.title is required, was optional", "property Order.size is double, was int", "property Order.secret is removed",
        ]
        try await RunningGateway.with { gateway in
            let difference = try await Self.tool(gateway.conninfo, broken).diff()
            #expect(difference.comparison.breaking.map(\.text) == lines)
            #expect(difference.unfit.count == 1 && difference.unfit[0].contains("expected double precision, found bigint"))
            for line in lines { #expect(difference.text.contains("--   \(line)")) }
            let misfit = try #require(difference.refusal(isBreakingAccepted: true))
            #expect(misfit.code == .tableUnfit && misfit.description.ranges(of: ErrorCode.tableUnfit.fix).count == 1, "\(misfit)")
            let refusal = try #require(difference.refusal(isBreakingAccepted: false))
            let refused = await #expect(throws: SluiceError.self) {
                try await Self.tool(gateway.conninfo, broken).apply(acceptsBreaking: false)
            }
            #expect(refused == refusal && refusal.code == .breakingSchemaChange)
            let configuration = GatewayConfiguration(
                app: try ShopApp.configuration(files: broken), postgres: gateway.conninfo, kafka: nil,
                network: .init(port: 0, adminPort: 0), plugins: .init(inProcess: true))
            let stopped = await #expect(throws: SluiceError.self) { try await RunningGateway.run(configuration) { _ in } }
            #expect(stopped == refusal)
            // Accepted, it still has to fit the tables.
            let unfit = await #expect(throws: SluiceError.self) {
                try await Self.tool(gateway.conninfo, broken).apply(acceptsBreaking: true)
            }
            #expect(unfit?.code == .tableUnfit)
            try await gateway.sql("ALTER TABLE orders ALTER COLUMN size TYPE double precision")
            let done = try await Self.tool(gateway.conninfo, broken).apply(acceptsBreaking: true)
            #expect(done.applied == 2 && done.statements.count == 1)
            // A number never means something else: what had the old type, and what went, has given its number back to nobody.
            #expect(
                try await gateway.count(#"SELECT count(*) FROM sluice.property WHERE type = 'Order' AND name IN ('size', 'secret')"#) == 0)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.property WHERE type = 'Order' AND name LIKE '%@%'") == 2)
        }
    }

    @Test func `Scenario 44: an additive change is live in a gateway and its sessions that run, without a reset`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let old = try await gateway.openSession(["Order"])
            try await old.subscribe(1, [("Order", "store == 'north'")])
            let more = Self.grown.merging([
                ShopApp.table("stores", "schema"): """
                {
                    "title": "Store", "bsonType": "object", "required": ["_id", "size"],
                    "properties": { "_id": { "bsonType": "string" }, "name": { "bsonType": "string" }, "size": { "bsonType": "long" },
                        "store": { "bsonType": "string" } }
                }
                """
            ]) { $1 }
            #expect(try await Self.tool(gateway.conninfo, more).apply(acceptsBreaking: false).applied == 2)
            // A second at most.
            try await gateway.untilKnown("note", of: "Order")
            let new = try await gateway.openSession(["Order", "Store"])
            #expect(new.schema["Store"]?["store"] != nil)
            try await new.subscribe(1, [("Order", "store == 'north'")])
            #expect(new.rows["Order"]?[.string("n1")]?["note"] == .null)
            try await new.upload(1, [TestSession.order("n1", ["note": .string("hello")], .set)])
            try await new.receive { $0.rows["Order"]?[.string("n1")]?["note"] == .string("hello") }
            // A commit is in the log before others see it.
            #expect(try await eventually { try await gateway.count("SELECT count(*) FROM orders WHERE note = 'hello'") == 1 })
            // The session of before goes on: no error, no reset, its own properties.
            try await gateway.sql("UPDATE orders SET title = 'still here' WHERE _id = 'n1'")
            try await old.receive { $0.rows["Order"]?[.string("n1")]?["title"] == .string("still here") }
            #expect(old.error == nil && !old.hasEnded)
        }
    }

    @Test func `Scenario 44: in development mode a client's additive change is live beside the others`() async throws {
        try await RunningGateway.with(isDevelopment: true) { gateway in
            let old = try await gateway.openSession(["Order"])
            try await old.subscribe(1, [("Order", "store == 'north'")])
            let new = try await gateway.session(token: try await gateway.anonymousToken())
            let type = ObjectType(
                name: "Order",
                properties: [
                    Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
                    Property(id: 3, name: "colour", type: .string, isOptional: true),
                ])
            let crate = ObjectType(name: "Crate", properties: [Property(id: 1, name: "_id", type: .int)])
            try await new.hello(Schema([type, crate]))
            #expect(new.schema["Order"]?["colour"] != nil && new.schema["Crate"] != nil)
            try await new.subscribe(1, [("Order", "store == 'north'")])
            // It has a part of the class: what it leaves out is empty.
            try await new.upload(1, [TestSession.order("o1", ["colour": .string("red"), "store": .string("north")])])
            try await old.receive { $0.rows["Order"]?[.string("o1")] != nil }
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE colour = 'red'") == 1)
            #expect(try await gateway.count(#"SELECT count(*) FROM "Crate""#) == 0)
            #expect(old.error == nil && !old.hasEnded)
        }
    }
}
