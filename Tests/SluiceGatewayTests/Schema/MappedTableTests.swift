import Foundation
import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceRealm
import SluiceTools
import SluiceValues
import SluiceWire
import Testing

/// Classes whose columns have other names than their properties, on the whole path.
@Suite(.timeLimit(.minutes(5))) struct `Tables with a mapping` {
    /// Two columns have each other's names. A link leads to a table of another schema.
    private static let tables = #"""
        CREATE SCHEMA "The Crm";
        CREATE TABLE "The Crm"."Customers" ("customer ""key""" text PRIMARY KEY, "Full Name" text);
        CREATE TABLE "Order Heads" (
            order_id text PRIMARY KEY, "owner ""id""" text NOT NULL, title text, note text, amount bigint NOT NULL CHECK (amount < 100),
            customer text REFERENCES "The Crm"."Customers", tags text[] NOT NULL DEFAULT '{}', untold text DEFAULT 'x');
        CREATE TABLE readings (reading_id text PRIMARY KEY, measured double precision NOT NULL);
        CREATE TABLE members (user_ref text PRIMARY KEY, "Team Name" text);
        INSERT INTO "The Crm"."Customers" VALUES ('c1', 'Ann');
        INSERT INTO "Order Heads" (order_id, "owner ""id""", title, note, amount, customer) VALUES
            ('o1', 'north', 'the title', 'the note', 1, 'c1'), ('o2', 'south', 'far', NULL, 2, NULL);
        """#

    private static let head = """
        "title": "Head", "bsonType": "object", "required": ["_id", "ownerId", "size"],
        "properties": {
            "_id": { "bsonType": "string" }, "ownerId": { "bsonType": "string" }, "title": { "bsonType": "string" },
            "note": { "bsonType": "string" }, "size": { "bsonType": "long" }, "buyer": { "bsonType": "string" },
            "tags": { "bsonType": "array", "items": { "bsonType": "string" } }
        }
        """

    private static let files: [String: String] = {
        var files = ShopApp.files.filter { !$0.key.contains("/public/") }
        files["sync/config.json"] = """
            { "type": "flexible", "state": "enabled", "service_name": "postgres", "queryable_fields_names": ["ownerId", "size"],
              "indexed_queryable_fields_names": ["ownerId"], "asymmetric_tables": ["Reading"] }
            """
        files["auth/custom_user_data.json"] =
            #"{ "enabled": true, "database_name": "public", "collection_name": "members", "user_id_field": "_id" }"#
        let folder = "data_sources/postgres/public/Order Heads"
        files["\(folder)/schema.json"] = """
            { \(head), "mapping": { "_id": "order_id", "ownerId": "owner \\"id\\"", "title": "note", "note": "title", "size": "amount",
              "buyer": "customer" } }
            """
        files["\(folder)/relationships.json"] =
            ##"{ "buyer": { "ref": "#/relationship/postgres/The Crm/Customers", "foreign_key": "_id", "is_list": false } }"##
        let member = NoteApp.role("member", when: #"{ "%%user.custom_data.team": "red" }"#, write: #"{ "ownerId": "north" }"#)
        files["\(folder)/rules.json"] = #"{ "roles": [\#(member)] }"#
        files["data_sources/postgres/The Crm/Customers/schema.json"] = """
            { "title": "Customer", "bsonType": "object", "properties": { "_id": { "bsonType": "string" }, "name": { "bsonType": "string" } },
              "mapping": { "_id": "customer \\"key\\"", "name": "Full Name" } }
            """
        files["data_sources/postgres/public/readings/schema.json"] = """
            { "title": "Reading", "bsonType": "object", "required": ["value"],
              "properties": { "_id": { "bsonType": "string" }, "value": { "bsonType": "double" } },
              "mapping": { "_id": "reading_id", "value": "measured" } }
            """
        files["data_sources/postgres/public/members/schema.json"] = """
            { "title": "Member", "bsonType": "object", "properties": { "_id": { "bsonType": "string" }, "team": { "bsonType": "string" } },
              "mapping": { "_id": "user_ref", "team": "Team Name" } }
            """
        files["data_sources/postgres/default_rule.json"] = #"{ "roles": [\#(NoteApp.role("all"))] }"#
        return files
    }()

    private static func with(_ body: @escaping @Sendable (RunningGateway, RunningGateway.Account) async throws -> Void) async throws {
        try await RunningGateway.deploy(tables) { deployment in
            try await deployment.run(files) { gateway in
                // The row of custom data gives the user the role.
                let account = try await gateway.account()
                try await gateway.sql("INSERT INTO members VALUES ('\(account.id)', 'red')")
                try await body(gateway, account)
            }
        }
    }

    private static func head(_ key: String) -> ObjectKey { ObjectKey(type: "Head", key: .string(key)) }

    private static let row =
        #"SELECT concat_ws('|', "owner ""id""", note, title, amount, customer, untold) FROM "Order Heads" WHERE order_id = "#

    @Test func `serve our protocol: bootstrap, SQL writes, writes, undone writes and links`() async throws {
        try await Self.with { gateway, account in
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Head", "Customer"])
            try await session.subscribe(1, [("Head", "ownerId == 'north' AND size < 50"), ("Customer", "TRUEPREDICATE")])
            let first = try #require(session.rows["Head"]?[.string("o1")])
            #expect(first["title"] == .string("the note") && first["note"] == .string("the title") && first["size"] == .int(1))
            #expect(session.rows["Customer"]?[.string("c1")]?["name"] == .string("Ann") && session.rows["Head"]?.count == 1)
            try await gateway.sql(#"UPDATE "Order Heads" SET note = 'new', amount = 3 WHERE order_id = 'o1'"#)
            try await session.receive { $0.rows["Head"]?[.string("o1")]?["title"] == .string("new") }
            #expect(session.rows["Head"]?[.string("o1")]?["size"] == .int(3))
            try await session.upload(
                1,
                [
                    ObjectChange(
                        object: Self.head("o3"), kind: .create,
                        values: ["ownerId": .string("north"), "title": .string("t"), "size": .int(7), "buyer": .string("c1")]),
                    ObjectChange(object: Self.head("o1"), kind: .set, values: ["note": .string("n")]),
                ])
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.isEmpty)
            #expect(try await gateway.texts(Self.row + "'o3'") == ["north|t|7|c1|x"])
            #expect(try await gateway.texts(Self.row + "'o1'") == ["north|new|n|3|c1|x"])
            // A check of the table, and one of the rules.
            try await session.upload(2, [ObjectChange(object: Self.head("o1"), kind: .set, values: ["size": .int(100)])])
            try await session.upload(3, [ObjectChange(object: Self.head("o1"), kind: .set, values: ["ownerId": .string("south")])])
            try await session.receive { $0.acknowledged == 3 && $0.compensations.count == 2 }
            #expect(session.compensations.allSatisfy { $0.object == Self.head("o1") }, "\(session.compensations)")
            #expect(!session.compensations[0].error.message.contains("amount"), "a column's name is no client's business")
            #expect(try await gateway.texts(Self.row + "'o1'") == ["north|new|n|3|c1|x"])
            try await gateway.sql(#"DELETE FROM "Order Heads" WHERE order_id = 'o3'"#)
            try await session.receive { $0.rows["Head"]?[.string("o3")] == nil }
            session.close()
        }
    }

    @Test func `serve Realm's protocol`() async throws {
        try await Self.with { gateway, account in
            let client = RealmTestClient(try AppDirectory.read(files: Self.files).schema)
            try await client.connect(gateway.url, app: gateway.app, token: account.token)
            try await client.subscribe(["Head": "ownerId == 'north'"])
            #expect(client.file.objects[Self.head("o1")]?["title"] == .string("the note"))
            try await client.write([
                .createObject(Self.head("o4")), .update(RealmPath(Self.head("o4"), "ownerId"), .value(.string("north"))),
                .update(RealmPath(Self.head("o4"), "size"), .value(.int(4))), .addInteger(RealmPath(Self.head("o4"), "size"), 2),
                .update(RealmPath(Self.head("o4"), "title"), .value(.string("r"))),
            ])
            try await client.synchronize()
            #expect(try await gateway.texts(Self.row + "'o4'") == ["north|r|6|x"])
            try await client.write([.update(RealmPath(Self.head("o4"), "size"), .value(.int(100)))])
            try await client.receive { !$0.compensations.isEmpty }
            try await gateway.sql(#"UPDATE "Order Heads" SET title = 'sql' WHERE order_id = 'o4'"#)
            try await client.receive { $0.objects[Self.head("o4")]?["note"] == .string("sql") }
            #expect(client.file.objects[Self.head("o4")]?["size"] == .int(6))
            client.disconnect()
        }
    }

    @Test func `store asymmetric objects, and are explained by their columns`() async throws {
        try await Self.with { gateway, account in
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Head", "Reading"])
            let object = ObjectKey(type: "Reading", key: .string("r1"))
            try await session.ingest(1, [ObjectChange(object: object, kind: .create, values: ["value": .double(1.5)])])
            #expect(try await gateway.texts("SELECT reading_id || measured FROM readings") == ["r11.5"])
            let query = "size > 1".addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let path = "/admin/v1/explain?user=\(account.id)&type=Head&query=ownerId%20%3D%3D%20'south'%20AND%20\(query)"
            let answer = try await gateway.request("GET", path, admin: true).json
            #expect(answer["rows"]?["counted"] == .int(1), "\(answer)")
            let sql = answer["postgres"]?["sql"]?.string ?? ""
            #expect(sql.contains(#"FROM "public"."Order Heads" AS t0"#) && sql.contains(#"t0."amount" >"#), "\(sql)")
            let why = try await gateway.request("GET", "/admin/v1/why?user=\(account.id)&type=Head&id=o2", admin: true).json
            #expect(why["exists"] == .bool(true), "\(why)")
            session.close()
        }
    }

    // MARK: Schemas

    @Test func `are made by schema apply with their columns, and a second run changes nothing`() async throws {
        try await GatewayDatabase.with { conninfo in
            let app = try AppDirectory.read(files: Self.files)
            let difference = try await SchemaTool(app: app, postgres: conninfo).apply(acceptsBreaking: false)
            #expect(
                difference.statements.contains {
                    $0.contains(#""order_id" text COLLATE "C" NOT NULL"#) && $0.contains(#"PRIMARY KEY ("order_id")"#)
                })
            let again = try await SchemaTool(app: app, postgres: conninfo).diff()
            #expect(again.text.contains("Nothing changes"), "\(again.text)")
            #expect(try await SchemaMigration(app: app, postgres: conninfo).apply().additions.contains { $0.contains(#"("customer")"#) })
            // Another column is another place of the values, which the comparison with the recorded schema finds.
            let moved = Self.files.mapValues { $0.replacing(#""size": "amount""#, with: #""size": "sum""#) }
            let change = try await SchemaTool(app: try AppDirectory.read(files: moved), postgres: conninfo).diff()
            #expect(change.comparison.breaking.map(\.text) == ["property Head.size is in the column “sum”, was in “amount”"])
        }
    }

    @Test func `are served after the entry that a refusal names is written`() async throws {
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(Self.tables)
            await connection.close()
            let without = Self.files.mapValues { $0.replacing(#""_id": "order_id", "#, with: "") }
            let refused = try await SchemaTool(app: try AppDirectory.read(files: without), postgres: conninfo).diff().unfit.joined()
            #expect(refused.contains(#"Name it in schema.json: "mapping": {"_id":"order_id"}"#), "\(refused)")
            #expect(try await SchemaTool(app: try AppDirectory.read(files: Self.files), postgres: conninfo).diff().unfit == [])
        }
    }
}
