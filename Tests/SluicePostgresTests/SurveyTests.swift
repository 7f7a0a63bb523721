import SluiceCore
import SluicePostgres
import Testing

@Suite struct `The survey of a database` {
    private static let shop = """
        CREATE SCHEMA shop; CREATE SCHEMA "Billing Dept";
        CREATE TYPE shop.status AS ENUM ('open', 'paid');
        CREATE DOMAIN shop.price AS numeric(10,2) NOT NULL DEFAULT 0;
        CREATE DOMAIN shop.net AS shop.price CHECK (VALUE >= 0);
        CREATE DOMAIN shop.tags AS text[]; CREATE DOMAIN shop.labels AS shop.tags;
        CREATE TABLE shop.customers (
            customer_no serial PRIMARY KEY, email varchar(200) UNIQUE NOT NULL, "Home Town" text, tags shop.tags, grid int[][],
            gone text, name text GENERATED ALWAYS AS (lower(email)) STORED, labels shop.labels);
        ALTER TABLE shop.customers DROP COLUMN gone;
        CREATE TABLE shop.orders (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int NOT NULL REFERENCES shop.customers, status shop.status NOT NULL,
            total shop.net, placed date DEFAULT now(), states shop.status[]);
        CREATE INDEX ON shop.orders (placed, status); CREATE INDEX ON shop.orders (abs(customer)); CREATE INDEX ON shop.orders (customer);
        CREATE TABLE "Billing Dept"."Order Lines" (
            order_id bigint REFERENCES shop.orders, line int, note text, PRIMARY KEY (order_id, line), UNIQUE (note) DEFERRABLE);
        CREATE UNIQUE INDEX ON "Billing Dept"."Order Lines" (line) WHERE line > 7;
        CREATE TABLE shop.events (id uuid DEFAULT gen_random_uuid(), day date NOT NULL, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
        CREATE TABLE shop.events_a PARTITION OF shop.events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
        CREATE TABLE shop.events_b PARTITION OF shop.events DEFAULT;
        CREATE UNIQUE INDEX ON shop.events_a (id);
        CREATE VIEW shop.open_orders AS SELECT * FROM shop.orders WHERE status = 'open';
        CREATE MATERIALIZED VIEW shop.totals AS SELECT count(*) AS n FROM shop.orders;
        CREATE UNLOGGED TABLE shop.cache (id int PRIMARY KEY);
        CREATE TABLE shop.animals (id int PRIMARY KEY); CREATE TABLE shop.cats () INHERITS (shop.animals);
        CREATE TABLE shop.private (id int PRIMARY KEY); ALTER TABLE shop.private ENABLE ROW LEVEL SECURITY;
        CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
        CREATE FOREIGN TABLE shop.lines (line text) SERVER files OPTIONS (filename '/dev/null');
        """

    private static func with(_ sql: String, _ body: (PostgresConnection) async throws -> Void) async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script(sql)
            try await body(connection)
            await connection.close()
        }
    }

    @Test func `has the tables, columns, keys, indexes and references that plain SQL made`() async throws {
        try await Self.with(Self.shop) { connection in
            let survey = try await SurveyReader().read(connection)
            func relation(_ name: String) throws -> DatabaseSurvey.Relation {
                try #require(survey.relations.first { $0.name == name }, "\(name)")
            }
            #expect(
                survey.relations.map(\.displayName) == [
                    "Billing Dept.Order Lines", "shop.animals", "shop.cache", "shop.cats", "shop.customers", "shop.events", "shop.lines",
                    "shop.open_orders", "shop.orders", "shop.private", "shop.totals",
                ])
            try Self.checkColumns(try relation("customers"), try relation("orders"))
            let orders = try relation("orders")
            #expect(orders.keys == [.init(["id"], isPrimary: true)] && orders.indexed == ["id", "placed", "customer"])
            #expect(orders.references == [.init(["customer"], to: "shop", "customers", ["customer_no"])])
            let lines = try relation("Order Lines")
            // Neither a deferrable nor a partial unique index is a key.
            #expect(lines.keys == [.init(["order_id", "line"], isPrimary: true)] && lines.indexed == ["order_id", "note", "line"])
            #expect(lines.references == [.init(["order_id"], to: "shop", "orders", ["id"])])
            let kinds = try ["events", "open_orders", "totals", "lines"].map { try relation($0).kind }
            #expect(kinds == [.partitioned, .view, .materializedView, .foreignTable])
            #expect(try relation("cache").isUnlogged && !orders.isUnlogged)
            #expect(try relation("animals").hasChildren && !relation("events").hasChildren)
            #expect(try relation("private").hasRowSecurity && !orders.hasRowSecurity)
            #expect(try relation("events").uniqueInPartitions == [])
            try await connection.script("CREATE UNIQUE INDEX ON shop.events_b (id)")
            let after = try await SurveyReader(tables: ["shop.events"]).read(connection)
            #expect(after.relations.map(\.uniqueInPartitions) == [["id"]])
        }
    }

    private static func checkColumns(_ customers: DatabaseSurvey.Relation, _ orders: DatabaseSurvey.Relation) throws {
        #expect(customers.columns.map(\.name) == ["customer_no", "email", "Home Town", "tags", "grid", "name", "labels"])
        let tags = try #require(customers.column("tags"))
        #expect(tags.isArray && tags.isArrayDomain && tags.base == "text" && tags.declared == "shop.tags" && tags.dimensions == 0)
        #expect(customers.column("labels")?.isArrayDomain == true && customers.column("grid")?.isArrayDomain == false)
        #expect(customers.column("grid")?.dimensions == 2)
        #expect(customers.column("email")?.declared == "character varying(200)" && customers.column("email")?.base == "character varying")
        #expect(customers.column("name")?.isGenerated == true && customers.column("name")?.hasDefault == false)
        #expect(customers.column("customer_no")?.hasDefault == true && customers.column("customer_no")?.isNotNull == true)
        #expect(orders.column("id")?.identity == .always)
        let status = try #require(orders.column("status"))
        #expect(status.isEnum && status.base == "shop.status" && status.isNotNull && !status.isArray)
        #expect(orders.column("states")?.isEnum == true && orders.column("states")?.isArray == true)
        let total = try #require(orders.column("total"))
        #expect(total.declared == "shop.net" && total.base == "numeric" && total.isNotNull && total.hasDefault && !total.isArrayDomain)
        #expect(orders.column("states")?.isArrayDomain == false && !status.isArrayDomain)
        #expect(orders.column("placed")?.hasDefault == true && orders.column("placed")?.isNotNull == false)
    }

    @Test func `leaves out the system, the gateway's schema and the tables of extensions`() async throws {
        try await Self.with("CREATE EXTENSION pg_buffercache; CREATE TABLE t (id int PRIMARY KEY)") { connection in
            try await CompanionSchema.create(connection)
            let survey = try await SurveyReader().read(connection)
            #expect(survey.relations.map(\.name) == ["pg_buffercache", "t"])
            #expect(survey.relations.map(\.owner) == ["pg_buffercache", nil])
        }
    }

    @Test func `is of the named schemas and tables, and an unknown one is an error with the nearest name`() async throws {
        try await Self.with(Self.shop) { connection in
            let named = try await SurveyReader(tables: ["orders", "Billing Dept.Order Lines"]).read(connection)
            #expect(named.relations.map(\.name) == ["Order Lines", "orders"])
            let schema = try await SurveyReader(schemas: ["Billing Dept"]).read(connection)
            #expect(schema.relations.map(\.name) == ["Order Lines"])
            let wrong = await #expect(throws: SluiceError.self) { try await SurveyReader(schemas: ["shopp"]).read(connection) }
            #expect(wrong?.code == .configInvalid && wrong?.fix == "Did you mean 'shop'?", "\(wrong?.fix ?? "")")
            let empty = await #expect(throws: SluiceError.self) { try await SurveyReader(schemas: ["public"]).read(connection) }
            #expect(empty?.message == "The schema 'public' has no table.")
            let table = await #expect(throws: SluiceError.self) { try await SurveyReader(tables: ["shop.order"]).read(connection) }
            #expect(table?.message == "The table 'shop.order' does not exist.")
        }
    }

    @Test func `of 2,000 tables is whole`() async throws {
        try await Self.with("CREATE SCHEMA many") { connection in
            // Each block holds a lock for every table that it makes.
            for start in 0..<4 {
                try await connection.script(
                    """
                    DO $$ BEGIN FOR i IN 1..500 LOOP
                        EXECUTE format('CREATE TABLE many.t\(start)_%s (id bigint PRIMARY KEY, a text, b numeric, c timestamptz)', i);
                    END LOOP; END $$
                    """)
            }
            let survey = try await SurveyReader().read(connection)
            #expect(survey.relations.count == 2_000)
            #expect(
                survey.relations.allSatisfy {
                    $0.columns.map(\.name) == ["id", "a", "b", "c"] && $0.keys == [.init(["id"], isPrimary: true)]
                })
        }
    }
}
