import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceTools
import SluiceValues
import Testing

/// The rights of a gateway's role, which owns no table.
@Suite(.timeLimit(.minutes(5))) struct `Grants for a role that owns no table` {
    @Test func `are named all at once by a gateway that lacks them, with code 909`() async throws {
        try await ExistingShop.with { shop in
            let error = await #expect(throws: SluiceError.self) { try await shop.run { _ in } }
            #expect(error?.code == .grantMissing && error?.code.rawValue == 909)
            for piece in [
                "The role may not replicate. Run: ALTER ROLE \"\(shop.role)\" REPLICATION;",
                "Run: CREATE SCHEMA sluice AUTHORIZATION \"\(shop.role)\";", "GRANT USAGE ON SCHEMA \"Crm\" TO",
                "The role lacks SELECT, INSERT, UPDATE, DELETE on public.orders.",
                #"GRANT SELECT ON "public"."catalogue" TO"#, "GRANT USAGE ON SEQUENCE public.orders_number_seq TO",
                "ALTER TABLE public.visits_old REPLICA IDENTITY FULL;", "The publication sluice_shop_",
                "does not exist. Run: CREATE PUBLICATION",
                #"GRANT SELECT, TRIGGER ON "public"."members" TO"#,
            ] { #expect(error?.message.contains(piece) == true, "\(piece): \(error?.message ?? "")") }
            let made = try await shop.texts("SELECT 1 FROM pg_namespace WHERE nspname = 'sluice'")
            #expect(made.isEmpty, "a gateway that does not start changes nothing")
        }
    }

    @Test func `are printed as SQL, after which nothing is missing and a gateway starts`() async throws {
        try await ExistingShop.with { shop in
            let list = try await shop.grants()
            #expect(list.missing.count > 15 && list.missingTables.isEmpty)
            #expect(!list.text(all: false).contains("GRANT SELECT, INSERT, UPDATE, DELETE ON \"public\".\"catalogue\""))
            try await shop.grant()
            let after = try await shop.grants()
            #expect(after.missing.isEmpty, "\(after.missing)")
            #expect(after.text(all: false).hasSuffix("-- It lacks nothing.") && after.text(all: true).contains("GRANT CONNECT ON DATABASE"))
            try await shop.run { _ in }
            #expect(
                try await shop.texts("SELECT tablename FROM pg_tables WHERE tableowner = '\(shop.role)' AND schemaname <> 'sluice'") == [])
            // A second start, and the comparison, find everything in place.
            try await shop.run { _ in }
            #expect(try await shop.grants().missing.isEmpty)
        }
    }

    @Test func `are missing again one by one when they are revoked`() async throws {
        try await ExistingShop.with { shop in
            try await shop.grant()
            let losses = [
                (#"REVOKE UPDATE ON orders FROM \#(shop.role)"#, "The role lacks UPDATE on public.orders"),
                (#"REVOKE USAGE ON SCHEMA "Crm" FROM \#(shop.role)"#, "The role may not use the schema Crm"),
                ("ALTER TABLE order_lines REPLICA IDENTITY DEFAULT", "Changes of public.order_lines lack their old rows"),
                ("REVOKE USAGE ON SEQUENCE visits_visit_seq FROM \(shop.role)", "may not use the sequence public.visits_visit_seq"),
            ]
            for (number, loss) in losses.enumerated() {
                try await shop.sql(loss.0)
                let missing = try await shop.grants().missing
                #expect(missing.count == number + 1 && missing.contains { $0.lack.contains(loss.1) }, "\(missing)")
            }
            let error = await #expect(throws: SluiceError.self) { try await shop.run { _ in } }
            #expect(error?.code == .grantMissing && error?.message.contains("lacks 4 of its grants") == true)
        }
    }

    @Test func `let a gateway make the partitions of a table that is partitioned by time`() async throws {
        let folder = "data_sources/postgres/public/measures"
        let files = ExistingShop.files.merging([
            "\(folder)/schema.json": """
            { "title": "Measure", "bsonType": "object", "required": ["_id", "at"],
              "properties": { "_id": { "bsonType": "string" }, "at": { "bsonType": "date" } } }
            """,
            "\(folder)/ingest.json": #"{ "partition_by": "at", "every": "day", "keep_days": 3 }"#,
            "sync/config.json": try #require(ExistingShop.files["sync/config.json"]).replacing(
                #""type": "flexible","#, with: #""type": "flexible", "asymmetric_tables": ["Measure"],"#),
        ]) { $1 }
        try await ExistingShop.with { shop in
            try await shop.sql(
                """
                CREATE TABLE measures (_id text COLLATE "C" NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (_id, at)) PARTITION BY RANGE (at);
                CREATE TABLE measures_default PARTITION OF measures DEFAULT
                """)
            try await shop.grant(files: files)
            let missing = try await shop.grants(files: files).missing
            #expect(missing.isEmpty, "\(missing)")
            try await shop.run(files: files) { gateway in
                let made = "SELECT count(*) FROM pg_class WHERE relname ~ '^measures_2' AND relkind = 'r'"
                let isMade = try await gateway.eventually(made, is: 3)
                #expect(isMade, "the current day and two ahead have a partition")
            }
        }
    }

    @Test func `are nothing for a superuser, and everything for a role that does not exist`() async throws {
        try await ExistingShop.with { shop in
            let app = try AppDirectory.read(files: ExistingShop.files)
            let role = try #require(try await shop.texts("SELECT current_user").first)
            #expect(try await GrantTool(app: app, postgres: shop.deployment.conninfo, role: role).list().missing.isEmpty)
            let list = try await GrantTool(app: app, postgres: shop.deployment.conninfo, role: "no \"such").list()
            #expect(list.missing.first?.statement == #"CREATE ROLE "no ""such" LOGIN REPLICATION"#)
            #expect(list.text(all: false).contains("\\password"))
        }
    }

    @Test func `that schema apply lacks are printed before anything is changed`() async throws {
        try await ExistingShop.with { shop in
            try await shop.grant()
            var files = ExistingShop.files
            files["data_sources/postgres/public/notes/schema.json"] =
                #"{ "title": "Note", "bsonType": "object", "properties": { "_id": { "bsonType": "string" } } }"#
            let path = "data_sources/postgres/public/catalogue/schema.json"
            files[path] = files[path]?.replacing(
                #""title": { "bsonType": "string" }"#, with: #""title": { "bsonType": "string" }, "more": { "bsonType": "string" }"#)
            let tool = SchemaTool(app: try AppDirectory.read(files: files), postgres: shop.conninfo)
            let error = await #expect(throws: SluiceError.self) { try await tool.apply(acceptsBreaking: false) }
            #expect(error?.code == .grantMissing, "\(String(describing: error))")
            for piece in [
                #"ALTER TABLE "public"."catalogue" ADD COLUMN "more" text"#, #"CREATE TABLE "public"."notes""#,
                #"ALTER TABLE "public"."notes" REPLICA"#,
            ] {
                #expect(error?.message.contains(piece) == true, "\(piece): \(error?.message ?? "")")
            }
            #expect(try await shop.texts("SELECT 1 FROM pg_attribute WHERE attname = 'more' AND attrelid = 'catalogue'::regclass") == [])
            // The owner runs them, and the role records the schema.
            let lines = (error?.message ?? "").split(separator: "\n").filter { $0.hasPrefix("  ") }.joined()
            try await shop.sql(lines)
            #expect(try await tool.apply(acceptsBreaking: false).applied == 1)
        }
    }
}
