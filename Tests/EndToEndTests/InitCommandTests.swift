import Foundation
import RealmSwift
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct `sluice init` {
    /// Runs the body with a fresh database that has the SQL's tables, and a folder.
    static func with(_ sql: String, _ body: (_ conninfo: String, _ folder: String) async throws -> Void) async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_init_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let folder = try DataFolder()
        let conninfo = "\(base) dbname=\(name)"
        let outcome: Result<Void, any Error>
        do {
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(sql)
            await connection.close()
            outcome = .success(try await body(conninfo, folder.path))
        } catch { outcome = .failure(error) }
        let slots = "FROM pg_replication_slots WHERE database = '\(name)'"
        try await admin.query("SELECT pg_terminate_backend(active_pid, 30000) \(slots) AND active_pid IS NOT NULL")
        try await admin.query("SELECT pg_drop_replication_slot(slot_name) \(slots)")
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    // MARK: The command

    @Test func `prints, asks, writes what is missing, and keeps what is there`() async throws {
        try await Self.with(TableShop.tables) { conninfo, folder in
            let app = folder + "/shop"
            let words = ["init", app, "--postgres", conninfo]
            let unasked = try await Program.sluice(words)
            #expect(unasked.code == .exit(78) && unasked.err.contains("pass --yes"), "\(unasked)")
            #expect(!FileManager.default.fileExists(atPath: app))
            for line in [
                "  Order: table public.orders, key order_no, 6 properties; links customer_id → Customer",
                "  public.order_lines: Its primary key has several columns (order_no, line), and an object has one key. "
                    + "The statement writes every row once.",
                #"    ALTER TABLE "public"."order_lines" ADD COLUMN _id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE;"#,
                "  public.unpaid: It is a view, whose changes PostgreSQL does not log. Synchronise the tables that it reads.",
                "  new   data_sources/postgres/public/orders/relationships.json",
            ] { #expect(unasked.out.split(separator: "\n").contains(line[...]), "\(line)\n\(unasked.out)") }
            let written = try await Program.sluice(words + ["--yes"])
            #expect(written.code == .exit(0) && written.err == "sluice: 8 files are written\n", "\(written)")
            #expect(written.out.contains("Every user is denied until you open a role"))
            let sync = app + "/sync/config.json"
            let own = try String(contentsOfFile: sync, encoding: .utf8).replacing(#""enabled""#, with: #""disabled""#)
            try own.write(toFile: sync, atomically: true, encoding: .utf8)
            try FileManager.default.removeItem(atPath: app + "/auth/providers.json")
            let again = try await Program.sluice(words + ["--yes"])
            #expect(again.code == .exit(0) && again.err == "sluice: 1 files are written\n", "\(again)")
            #expect(
                again.out.contains("  kept  sync/config.json, which differs")
                    && again.out.contains(#"          -     "state": "disabled","#), "\(again.out)")
            #expect(try String(contentsOfFile: sync, encoding: .utf8) == own)
            let json = try JSON.parse(try await Program.sluice(words + ["--json"]).out)
            #expect(json["classes"]?.array?.compactMap { $0["class"]?.string } == ["Customer", "Order"])
            #expect(json["left_out"]?.array?.count == 2 && json["files"]?["same"]?.array?.count == 7)
        }
    }

    @Test func `refuses a database without a table that fits, and names what it cannot find`() async throws {
        try await Self.with("CREATE VIEW v AS SELECT 1 AS id; CREATE TABLE t (a int)") { conninfo, folder in
            let words = ["init", folder + "/app", "--postgres", conninfo, "--yes"]
            let empty = try await Program.sluice(words)
            #expect(empty.code == .exit(78) && empty.err.contains("No table can be synchronised."), "\(empty)")
            #expect(empty.out.contains("public.t: It has no primary key.") && !FileManager.default.fileExists(atPath: folder + "/app"))
            let unknown = try await Program.sluice(words + ["--schema", "pubic"])
            #expect(unknown.code == .exit(78) && unknown.err.contains("Did you mean 'public'?"), "\(unknown)")
            let bad = try await Program.sluice(words + ["--app-id", "my app"])
            #expect(bad.code == .exit(78) && bad.err.contains("The app id 'my app' is not a name."), "\(bad)")
        }
    }

    /// Tables of many types, keys, schemas and names.
    private static let many = """
        CREATE SCHEMA "Billing Dept";
        CREATE DOMAIN price AS numeric(10,2) NOT NULL DEFAULT 0; CREATE DOMAIN tags AS text[]; CREATE DOMAIN net AS price;
        CREATE TABLE "Everything" (
            "Key" serial PRIMARY KEY, a boolean, b smallint NOT NULL, c integer, d bigint, e real, f double precision, g numeric(10,2), h price,
            i text, j varchar(20), k uuid, l bytea, m timestamptz, n jsonb, o text[], p int[] NOT NULL, q uuid[], r price[], s tags, "limit" int,
            "order date" timestamptz, "größe" int, "_id" text, t inet, u int[][], w int GENERATED ALWAYS AS (c + 1) STORED, x net);
        CREATE INDEX ON "Everything" (i); CREATE INDEX ON "Everything" ("limit");
        CREATE TABLE "Billing Dept"."Order Lines" (
            id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "the order" int NOT NULL REFERENCES "Everything",
            parent uuid REFERENCES "Billing Dept"."Order Lines", note text);
        CREATE TABLE "Billing Dept".everything (code varchar(8) PRIMARY KEY REFERENCES "Billing Dept".everything);
        CREATE TABLE hashed (id bigint PRIMARY KEY, v text) PARTITION BY HASH (id);
        CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 1, REMAINDER 0);
        CREATE TABLE composite (a int, b int, c bigint NOT NULL UNIQUE GENERATED BY DEFAULT AS IDENTITY, PRIMARY KEY (a, b));
        CREATE TABLE numbered (n numeric PRIMARY KEY);
        """

    @Test func `makes a directory that fits the tables, and that serve finds no fault with`() async throws {
        try await Self.with(Self.many) { conninfo, folder in
            let app = folder + "/many"
            let written = try await Program.sluice(["init", app, "--postgres", conninfo, "--yes"])
            #expect(written.code == .exit(0), "\(written)")
            let json = try JSON.parse(try await Program.sluice(["init", app, "--postgres", conninfo, "--json"]).out)
            let names = json["classes"]?.array?.compactMap { $0["class"]?.string }
            #expect(names == ["OrderLine", "BillingDeptEverything", "Everything", "Composite", "Hashed"], "\(names ?? [])")
            let omitted = json["left_out"]?.array?.map { "\($0["table"]?.string ?? "") \($0["column"]?.string ?? "")" }
            #expect(
                omitted == [
                    "public.numbered ", "public.Everything s", "public.Everything t", "public.Everything u",
                ], "\(omitted ?? [])")
            let diff = try await Program.sluice(["schema", "diff", "--app", app, "--postgres", conninfo, "--json"])
            let found = try JSON.parse(diff.out)
            #expect(diff.code == .exit(0) && found["unfit"] == [] && found["rules"] == .null, "\(diff)")
            // Only the replica identity is missing.
            let statements = found["statements"]?.array?.compactMap(\.string) ?? []
            #expect(statements.count == 6 && statements.allSatisfy { $0.hasSuffix("REPLICA IDENTITY FULL") }, "\(statements)")
            let check = try await Program.sluice(["migrate", "check", app])
            #expect(check.code == .exit(0) && check.out.hasPrefix("App many runs as it is."), "\(check)")
        }
    }

    @Test(arguments: seeds(4)) func `makes directories of random tables that fit them`(seed: UInt64) async throws {
        try await Self.with(RandomTables(seed: seed).sql) { conninfo, folder in
            let app = folder + "/random"
            let written = try await Program.sluice(["init", app, "--postgres", conninfo, "--yes", "--json"])
            // A draw may have no table that fits.
            if written.code == .exit(78), written.err.contains("No table can be synchronised.") { return }
            #expect(written.code == .exit(0), "seed \(seed): \(written)")
            let diff = try await Program.sluice(["schema", "diff", "--app", app, "--postgres", conninfo, "--json"])
            let found = try JSON.parse(diff.out)
            #expect(diff.code == .exit(0) && found["unfit"] == [] && found["rules"] == .null, "seed \(seed): \(diff)")
            let statements = found["statements"]?.array?.compactMap(\.string) ?? []
            #expect(statements.allSatisfy { $0.hasSuffix("REPLICA IDENTITY FULL") }, "seed \(seed): \(statements)")
        }
    }

    // MARK: A second run

    /// Requires that a gateway would start with the directory.
    private static func requireFit(_ app: String, _ conninfo: String) async throws {
        let check = try await Program.sluice(["migrate", "check", app])
        #expect(check.code == .exit(0), "\(check)")
        let diff = try await Program.sluice(["schema", "diff", "--app", app, "--postgres", conninfo, "--json"])
        let unfit = try JSON.parse(diff.out)["unfit"]
        #expect(diff.code == .exit(0) && unfit == [], "\(diff)")
    }

    private static func classes(_ app: String, _ conninfo: String) async throws -> [String] {
        let json = try JSON.parse(try await Program.sluice(["init", app, "--postgres", conninfo, "--json"]).out)
        return json["classes"]?.array?.map { entry in
            let words = ["schema", "table", "class"].map { entry[$0]?.string ?? "" }
            return "\(words[0]).\(words[1]) \(words[2])"
        } ?? []
    }

    @Test func `a second run leaves out the links of a class whose kept schema requires a value, and says so`() async throws {
        let tables = """
            CREATE TABLE customers (id bigint UNIQUE NOT NULL, name text);
            CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers (id));
            """
        try await Self.with(tables) { conninfo, folder in
            let app = folder + "/shop"
            let words = ["init", app, "--postgres", conninfo, "--yes"]
            let first = try await Program.sluice(words)
            #expect(first.code == .exit(0) && first.out.contains("public.customers: It has no primary key."), "\(first)")
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script("ALTER TABLE customers ADD PRIMARY KEY (id)")
            await connection.close()
            let second = try await Program.sluice(words)
            let orders = "data_sources/postgres/public/orders"
            #expect(second.code == .exit(0) && second.err == "sluice: 1 files are written\n", "\(second)")
            #expect(second.out.contains("  kept  \(orders)/schema.json") && second.out.contains("  left  \(orders)/relationships.json"))
            try await Self.requireFit(app, conninfo)
            // With the schema as the command would write it, the links fit.
            try FileManager.default.removeItem(atPath: "\(app)/\(orders)/schema.json")
            let third = try await Program.sluice(words)
            #expect(third.code == .exit(0) && third.err == "sluice: 2 files are written\n", "\(third)")
            try await Self.requireFit(app, conninfo)
        }
    }

    @Test func `a second run gives a new class no name that the directory has`() async throws {
        let tables = """
            CREATE SCHEMA archive; CREATE TABLE archive.orders (id bigint PRIMARY KEY); CREATE TABLE orders (id bigint, note text);
            """
        try await Self.with(tables) { conninfo, folder in
            let app = folder + "/shop"
            let words = ["init", app, "--postgres", conninfo, "--yes"]
            #expect(try await Program.sluice(words).code == .exit(0))
            #expect(try await Self.classes(app, conninfo) == ["archive.orders Order"])
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script("ALTER TABLE orders ADD PRIMARY KEY (id)")
            await connection.close()
            let second = try await Program.sluice(words)
            #expect(second.code == .exit(0), "\(second)")
            #expect(try await Self.classes(app, conninfo) == ["archive.orders Order", "public.orders Order2"])
            try await Self.requireFit(app, conninfo)
        }
    }

    @Test func `a second run that would make a directory without a gateway writes nothing`() async throws {
        try await Self.with(TableShop.tables) { conninfo, folder in
            let app = folder + "/shop"
            let words = ["init", app, "--postgres", conninfo, "--yes"]
            #expect(try await Program.sluice(words + ["--table", "customers"]).code == .exit(0))
            let path = app + "/data_sources/postgres/public/customers/schema.json"
            let own = try String(contentsOfFile: path, encoding: .utf8).replacing(#""uuid""#, with: #""string""#)
            try own.write(toFile: path, atomically: true, encoding: .utf8)
            let second = try await Program.sluice(words)
            #expect(second.code == .exit(78) && second.err.contains("but the '_id' of Customer is of type string"), "\(second)")
            #expect(!FileManager.default.fileExists(atPath: app + "/data_sources/postgres/public/orders"))
        }
    }

    @Test func `names foreign tables`() async throws {
        let tables = """
            CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE TABLE t (id int PRIMARY KEY);
            CREATE FOREIGN TABLE lines (line text) SERVER files OPTIONS (filename '/dev/null');
            """
        try await Self.with(tables) { conninfo, folder in
            let ran = try await Program.sluice(["init", folder + "/app", "--postgres", conninfo, "--json"])
            let left = try JSON.parse(ran.out)["left_out"]?.array ?? []
            #expect(left.map { $0["table"]?.string } == ["public.lines"], "\(ran)")
            #expect(left.first?["reason"]?.string == "It is a foreign table, whose changes another server has.")
        }
    }

    /// One question to the server is one piece of bytes on the way to it, or a few if it is long.
    @Test func `of 5,000 tables asks no question for each table`() async throws {
        try await Self.with("CREATE SCHEMA many") { conninfo, folder in
            let connection = try await PostgresConnection.connect(conninfo)
            // Each block holds a lock for every table that it makes.
            for start in 0..<10 {
                try await connection.script(
                    """
                    DO $$ BEGIN FOR i IN 1..500 LOOP
                        EXECUTE format('CREATE TABLE many.t\(start)_%s (id bigint PRIMARY KEY, a text, b numeric)', i);
                    END LOOP; END $$
                    """, within: .seconds(60))
            }
            await connection.close()
            let port = try #require(conninfo.split(separator: " ").last { $0.hasPrefix("port=") }.flatMap { Int($0.dropFirst(5)) })
            let link = try FaultyLink { [port] }
            defer { link.end() }
            let ran = try await Program.sluice(
                ["init", folder + "/app", "--postgres", "\(conninfo) host=127.0.0.1 port=\(link.port)", "--yes", "--json"])
            #expect(ran.code == .exit(0), "\(ran.err)")
            #expect((5..<100).contains(link.piecesToServer), "\(link.piecesToServer)")
            #expect(try JSON.parse(ran.out)["classes"]?.array?.count == 5_000)
        }
    }

    // MARK: From tables to an app

    @Test @MainActor func `leads from another role's tables to an app on them, with a role that has the printed grants alone`() async throws
    {
        let number = UInt64.random(in: .min ... .max)
        let (owner, role) = ("shop_\(number)", "gateway_\(number)")
        let tables = "CREATE ROLE \(owner); GRANT CREATE ON SCHEMA public TO \(owner); SET ROLE \(owner);"
        try await Self.with(tables + TableShop.tables) { conninfo, folder in
            let app = folder + "/shop"
            let written = try await Program.sluice(["init", app, "--postgres", conninfo, "--yes"])
            #expect(written.code == .exit(0), "\(written)")
            // The grants follow what the roles permit. The first role denies, and is put back.
            let rule = app + "/data_sources/postgres/default_rule.json"
            let denial = try String(contentsOfFile: rule, encoding: .utf8)
            try Self.opening(written.out).write(toFile: rule, atomically: true, encoding: .utf8)
            let grants = try await Program.sluice(["schema", "grants", "--app", app, "--postgres", conninfo, "--role", role])
            #expect(grants.code == .exit(0), "\(grants)")
            try denial.write(toFile: rule, atomically: true, encoding: .utf8)
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script("\(grants.out)\nALTER ROLE \(role) PASSWORD 'p'")
            let gateway = try ServedGateway(["serve", "--app", app, "--postgres", "\(conninfo) user=\(role) password=p", "--json"])
            try await gateway.start()
            do {
                try await Self.use(gateway, app: app, said: written.out, conninfo, URL(fileURLWithPath: folder))
            } catch {
                Issue.record("the gateway said: \(gateway.said.suffix(3_000))")
                await gateway.stop()
                throw error
            }
            await gateway.stop()
            #expect(
                try await connection.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner = '\(role)'").int(
                    0, 0) == 0)
            try await connection.query(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
            try await connection.script("DROP OWNED BY \(role), \(owner) CASCADE; DROP ROLE \(role), \(owner)")
            await connection.close()
        }
    }

    /// Returns the text between the first line that is `{` and the last that is `}`.
    static func opening(_ said: String) throws -> String {
        let lines = said.split(separator: "\n", omittingEmptySubsequences: false)
        let (first, last) = (try #require(lines.lastIndex(of: "{")), try #require(lines.lastIndex(of: "}")))
        return lines[first...last].joined(separator: "\n")
    }

    @MainActor private static func use(
        _ gateway: ServedGateway, app directory: String, said: String, _ conninfo: String, _ folder: URL
    ) async throws {
        let app = App(id: "shop", configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder))
        try await app.emailPasswordAuth.registerUser(email: "kim@example.com", password: "secret123")
        let user = try await app.login(credentials: .emailPassword(email: "kim@example.com", password: "secret123"))
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<ShopOrder>())
            subscriptions.append(QuerySubscription<ShopCustomer>())
        })
        configuration.objectTypes = [ShopOrder.self, ShopCustomer.self]
        configuration.fileURL = folder.appendingPathComponent("kim.realm")
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
        let session = try #require(realm.syncSession)
        // The role that was written denies everything.
        #expect(realm.objects(ShopOrder.self).isEmpty && realm.objects(ShopCustomer.self).isEmpty)

        let rule = directory + "/data_sources/postgres/default_rule.json"
        try opening(said).write(toFile: rule, atomically: true, encoding: .utf8)
        let hasArrived = try await eventually {
            realm.refresh()
            return realm.object(ofType: ShopOrder.self, forPrimaryKey: 7)?.customer_id?.Full_Name == "Ada"
        }
        #expect(hasArrived)
        let order = try #require(realm.object(ofType: ShopOrder.self, forPrimaryKey: 7))
        #expect(order.total == 12.5 && Array(order.tags) == ["urgent"] && order.customer_id?._id == TableShop.customer)

        try realm.write {
            order.paid = true
            let next = ShopOrder()
            (next._id, next.customer_id, next.total) = (8_000_000_001, order.customer_id, 3)
            realm.add(next)
        }
        try await session.wait(for: .upload)
        let connection = try await PostgresConnection.connect(conninfo)
        let rows = try await connection.query("SELECT order_no, paid, total FROM orders ORDER BY 1")
        #expect(rows.column(0) == ["7", "8000000001"] && rows.column(1) == ["t", "f"] && rows.column(2) == ["12.50", "3"])
        try await connection.script("UPDATE customers SET \"Full Name\" = 'Ada L.'")
        await connection.close()
        let isRenamed = try await eventually {
            realm.refresh()
            return realm.objects(ShopCustomer.self).first?.Full_Name == "Ada L."
        }
        #expect(isRenamed)
        session.suspend()
    }
}
