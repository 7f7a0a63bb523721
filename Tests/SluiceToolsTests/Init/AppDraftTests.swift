import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceTools
import TestSupport
import Testing

private typealias Relation = DatabaseSurvey.Relation
private typealias Column = DatabaseSurvey.Column

/// Returns a table whose first column is its primary key.
private func table(_ name: String, _ columns: [Column], schema: String = "public", change: (inout Relation) -> Void = { _ in }) -> Relation
{
    var relation = Relation(schema: schema, name: name)
    relation.columns = columns
    if let first = columns.first { relation.keys = [.init([first.name], isPrimary: true)] }
    change(&relation)
    return relation
}

private let id = Column("id", "bigint", isNotNull: true)

/// The decisions of `sluice init`.
struct AppDraftTests {
    private static func draft(_ relations: Relation...) -> AppDraft { AppDraft(DatabaseSurvey(relations: relations)) }

    // MARK: Types

    @Test(
        arguments: [
            ("boolean", PropertyType.bool), ("smallint", .int), ("integer", .int), ("bigint", .int), ("real", .float),
            ("double precision", .double), ("numeric", .decimal), ("text", .string), ("character varying", .string), ("uuid", .uuid),
            ("bytea", .binary), ("timestamp with time zone", .timestamp), ("jsonb", .mixed), ("character", .string),
            ("timestamp without time zone", .timestamp), ("date", .timestamp), ("json", .mixed),
        ] as [(String, PropertyType)])
    func `a type of PostgreSQL is a type of a property, and NOT NULL is required`(base: String, type: PropertyType) throws {
        let draft = Self.draft(table("items", [id, Column("a", base), Column("b", base, isNotNull: true)]))
        let item = try #require(draft.record.schema["Item"])
        #expect(item["a"]?.type == type && item["a"]?.isOptional == true)
        #expect(item["b"]?.type == type && item["b"]?.isOptional == (type == .mixed))
        #expect(draft.omissions.isEmpty)
    }

    @Test func `enums and domains have the type behind them, and arrays are lists`() throws {
        var status = Column("status", "shop.status", base: "shop.status")
        status.isEnum = true
        var tags = Column("tags", "text[]", base: "text")
        tags.isArray = true
        let draft = Self.draft(
            table("items", [id, Column("price", "price", base: "numeric"), Column("o", "sluice.objectid", base: "text"), tags, status]))
        let item = try #require(draft.record.schema["Item"])
        #expect(item["price"]?.type == .decimal && item["o"]?.type == .objectId && item["status"]?.type == .string)
        #expect(item["tags"]?.collection == .list && item["tags"]?.type == .string && item["tags"]?.isOptional == false)
        let times = Self.draft(
            table(
                "items", [id, Column("start", "time without time zone"), Column("end", "time with time zone"), Column("span", "interval")]))
        #expect(times.record.schema["Item"]?.properties.dropFirst().map(\.type) == [.string, .string, .string])
    }

    @Test func `a column without a property is left out with its type, and named again if it prevents inserts`() throws {
        var matrix = Column("matrix", "integer[]", base: "integer")
        (matrix.isArray, matrix.dimensions) = (true, 2)
        var net = Column("net", "net", base: "numeric")
        net.isArrayDomain = true
        let draft = Self.draft(
            table("items", [id, Column("address", "inet", isNotNull: true), Column("span", "int4range"), matrix, net]))
        #expect(draft.omissions.map(\.column) == ["address", "span", "matrix", "net"])
        #expect(
            draft.omissions.map(\.reason) == [
                "No property has the type inet.", "No property has the type int4range.", "It is an array of 2 dimensions.",
                "Its type net is a domain over an array.",
            ])
        #expect(draft.notes.map(\.text).filter { $0.contains("NOT NULL") }.count == 1)
        #expect(draft.record.schema["Item"]?.properties.map(\.name) == ["_id"])
    }

    // MARK: Keys

    @Test(arguments: ["bigint", "integer", "smallint", "uuid", "text", "character varying"])
    func `the primary key is _id, mapped to its column`(type: String) throws {
        let draft = Self.draft(table("orders", [Column("order_no", type, isNotNull: true), Column("note", "text")]))
        #expect(draft.record.tables["Order"] == .init(schema: "public", name: "orders", columns: ["_id": "order_no"]))
        #expect(draft.record.schema["Order"]?.properties.map(\.name) == ["_id", "note"])
    }

    @Test func `a column _id that is not the key has another property`() throws {
        let draft = Self.draft(table("orders", [id, Column("_id", "text"), Column("id_", "text")]))
        #expect(draft.record.tables["Order"]?.columns == ["_id": "id", "id_2": "_id"])
        let plain = Self.draft(table("orders", [Column("_id", "uuid", isNotNull: true)]))
        #expect(plain.record.tables["Order"]?.columns == [:])
    }

    @Test func `a composite key is refused with the statement that adds a key, and not if PostgreSQL fills a unique column`() throws {
        let columns = [Column("order_id", "bigint", isNotNull: true), Column("line", "integer", isNotNull: true)]
        let composite = table("order_lines", columns) { $0.keys = [.init(["order_id", "line"], isPrimary: true)] }
        let refused = Self.draft(composite)
        #expect(refused.record.tables.isEmpty && refused.omissions.count == 1)
        #expect(refused.omissions[0].reason.hasPrefix("Its primary key has several columns (order_id, line)"))
        #expect(
            refused.omissions[0].statement
                == #"ALTER TABLE "public"."order_lines" ADD COLUMN _id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE"#)
        var key = Column("line_key", "uuid", isNotNull: true)
        key.hasDefault = true
        var served = composite
        served.columns += [Column("email", "text", isNotNull: true), key]
        // A unique column that users fill is no key.
        served.keys += [.init(["email"]), .init(["line_key"])]
        #expect(Self.draft(served).record.tables["OrderLine"]?.columns == ["_id": "line_key"])
        served.keys.removeLast()
        #expect(Self.draft(served).record.tables.isEmpty)
    }

    @Test func `a table without a fitting key is refused with a statement`() {
        let without = Self.draft(table("logs", [Column("at", "date", isNotNull: true)]) { $0.keys = [] })
        #expect(without.omissions.first?.reason.hasPrefix("It has no primary key.") == true)
        #expect(without.omissions.first?.statement?.hasSuffix("PRIMARY KEY") == true)
        let money = Self.draft(table("logs", [Column("amount", "numeric(10,2)", base: "numeric", isNotNull: true), Column("_id", "text")]))
        #expect(money.omissions.first?.reason.contains("is of type numeric(10,2)") == true)
        #expect(money.omissions.first?.statement?.contains("ADD COLUMN _id2 uuid") == true)
        let times = Self.draft(table("logs", [Column("at", "time without time zone", isNotNull: true)]))
        #expect(times.omissions.first?.reason.contains("is of type time without time zone") == true)
    }

    @Test func `a key that only its sequence fills is noted with the statement that opens it`() {
        var always = id
        always.identity = .always
        let draft = Self.draft(table("orders", [always]))
        #expect(draft.notes.map(\.statement) == [#"ALTER TABLE "public"."orders" ALTER COLUMN "id" SET GENERATED BY DEFAULT"#])
        var serial = id
        serial.hasDefault = true
        #expect(Self.draft(table("orders", [serial])).notes.first?.text.contains("counts") == true)
        #expect(Self.draft(table("orders", [id])).notes.isEmpty)
    }

    @Test func `a partitioned table has a class if its primary key is one column`() {
        let columns = [id, Column("day", "date", isNotNull: true)]
        let hashed = table("events", columns) { $0.kind = .partitioned }
        #expect(Self.draft(hashed).record.tables["Event"]?.columns == ["_id": "id"])
        var ranged = hashed
        ranged.keys = [.init(["id", "day"], isPrimary: true)]
        let refusal = Self.draft(ranged).omissions.first
        #expect(refusal?.reason.contains("CREATE UNIQUE INDEX") == true && refusal?.statement == nil)
        ranged.uniqueInPartitions = ["id"]
        #expect(Self.draft(ranged).record.tables["Event"]?.columns == ["_id": "id"])
    }

    @Test func `a generated column is a property that devices read and no key, and an enum can be one`() {
        var sum = Column("sum", "integer", isNotNull: true)
        sum.isGenerated = true
        var kind = Column("kind", "kind", isNotNull: true)
        kind.isEnum = true
        let draft = Self.draft(table("items", [id, sum]))
        #expect(
            draft.record.schema["Item"]?["sum"]?.type == .int && draft.notes.map(\.text).contains { $0.contains("only read it: “sum”") })
        #expect(Self.draft(table("items", [sum])).record.tables.isEmpty)
        #expect(Self.draft(table("items", [kind])).record.schema["Item"]?["_id"]?.type == .string)
    }

    // MARK: Relations that have no class

    @Test func `views, foreign tables, tables of extensions and unlogged ones are left out by name`() {
        let relations: [Relation] = DatabaseSurvey.Kind.allCases.filter { $0 != .table && $0 != .partitioned }.map { kind in
            table("a_\(kind.rawValue)", [id]) { $0.kind = kind }
        }
        let others = [
            table("spatial_ref_sys", [id]) { $0.owner = "postgis" }, table("cache", [id]) { $0.isUnlogged = true },
            table("parents", [id]) { $0.hasChildren = true }, table("a/b", [id]), table(".hidden", [id]),
        ]
        let draft = AppDraft(DatabaseSurvey(relations: relations + others))
        #expect(draft.record.tables.isEmpty)
        #expect(Set(draft.omissions.map(\.table)) == Set((relations + others).map(\.displayName)))
        let words = [
            "is a view", "is a materialized view", "is a foreign table", "extension postgis", "unlogged", "inherit", "'a/b'", "'.hidden'",
        ]
        for (omission, word) in zip(draft.omissions, words) { #expect(omission.reason.contains(word), "\(omission)") }
        #expect(draft.omissions.compactMap(\.statement) == [#"ALTER TABLE "public"."cache" SET LOGGED"#])
    }

    // MARK: Names

    @Test(
        arguments: [
            ("orders", "Order"), ("order_lines", "OrderLine"), ("Customers", "Customer"), ("categories", "Category"),
            ("addresses", "Address"),
            ("boxes", "Box"), ("status", "Status"), ("news", "News"), ("series", "Series"), ("movies", "Movies"), ("gas", "Gas"),
            ("users", "User"),
            ("person", "Person"), ("2020 sales", "Table2020Sale"), ("größen", "Größen"), ("order-items!", "OrderItem"), ("---", "Table"),
            ("objects", "ObjectRow"), ("camelCaseRows", "CamelCaseRow"),
        ])
    func `a table's class has a name as Swift's types have`(name: String, expected: String) {
        #expect(Self.draft(table(name, [id])).record.schema.types.map(\.name) == [expected])
    }

    @Test func `class names are unique over schemas, and public keeps the short one`() {
        let draft = Self.draft(
            table("orders", [id], schema: "archive"), table("Orders", [id]), table("orders", [id]), table("orders", [id], schema: "old"))
        #expect(draft.record.schema.types.map(\.name) == ["ArchiveOrder", "Order", "Order2", "OldOrder"])
    }

    @Test func `a table keeps the class name of its file, and no other table gets a name of a file`() {
        let files = [
            "data_sources/postgres/archive/orders/schema.json": #"{ "title": "Order" }"#,
            "data_sources/postgres/public/people/schema.json": #"{ "title": "Human", "properties": { "home": { "title": "Place" } } }"#,
            "data_sources/other/public/customers/schema.json": #"{ "title": "Customer" }"#,
            "data_sources/postgres/public/broken/schema.json": "{",
            "data_sources/postgres/public/twice/schema.json": #"{ "title": "Order" }"#,
        ]
        let relations = [
            table("orders", [id], schema: "archive"), table("customers", [id]), table("orders", [id]), table("people", [id]),
            table("places", [id]), table("twice", [id]),
        ]
        let draft = AppDraft(DatabaseSurvey(relations: relations), known: KnownClasses(files))
        let names = relations.map { relation in
            draft.record.tables.first { $0.value.schema == relation.schema && $0.value.name == relation.name }?.key
        }
        #expect(names == ["Order", "Customer2", "Order2", "Human", "Place2", "Twice"])
    }

    @Test func `columns keep their names if these are identifiers`() throws {
        let names = ["order date", "customer_id", "limit", "Order-No", "order_date", "größe", "1st", "naïve", "☃", "$"]
        let draft = Self.draft(table("orders", [id] + names.map { Column($0, "text") }))
        let found = try #require(draft.record.schema["Order"]).properties.map(\.name)
        #expect(
            found == [
                "_id", "order_date2", "customer_id", "limit_", "Order_No", "order_date", "größe", "_1st", "naïve", "column", "column2",
            ])
    }

    // MARK: Links and queryable fields

    @Test func `a foreign key to a class's key is a link, and another one a value`() throws {
        let customers = table("customers", [id, Column("email", "text", isNotNull: true)])
        let orders = table(
            "orders",
            [
                id, Column("customer_id", "integer", base: "bigint", isNotNull: true), Column("email", "text"), Column("parent", "bigint"),
                Column("other", "bigint"),
            ]
        ) {
            $0.references = [
                .init(["customer_id"], to: "public", "customers", ["id"]), .init(["email"], to: "public", "customers", ["email"]),
                .init(["parent"], to: "public", "orders", ["id"]), .init(["other"], to: "else", "where", ["id"]),
                .init(["parent", "other"], to: "public", "orders", ["id", "other"]),
            ]
        }
        // A table whose key is a foreign key as well.
        let profiles = table("profiles", [Column("customer_id", "bigint", isNotNull: true)]) {
            $0.references = [.init(["customer_id"], to: "public", "customers", ["id"])]
        }
        let draft = Self.draft(customers, orders, profiles)
        let order = try #require(draft.record.schema["Order"])
        #expect(order["customer_id"]?.type == .link(to: "Customer") && order["customer_id"]?.isOptional == true)
        #expect(order["parent"]?.type == .link(to: "Order") && order["email"]?.type == .string && order["other"]?.type == .int)
        #expect(draft.record.schema["Profile"]?["_id"]?.type == .int)
        #expect(draft.record.fields.byType["Order"] == ["customer_id", "email", "parent", "other"])
    }

    @Test func `indexes make fields queryable, up to a bound, and none of them is the key or JSON`() throws {
        let names = (0..<20).map { "c\($0)" }
        let draft = Self.draft(
            table("wide", [id, Column("doc", "jsonb")] + names.map { Column($0, "text") }) { $0.indexed = ["id", "doc"] + names })
        #expect(draft.record.fields.byType["Wide"] == Set(names.prefix(AppDraft.mostQueryableFields)))
        #expect(draft.notes.map(\.text).contains { $0.hasPrefix("It has 20 columns") })
    }

    @Test func `a field of one type in several classes is proposed as the indexed queryable field, and none is set`() {
        func owned(_ name: String, _ type: String) -> Relation {
            table(name, [id, Column("tenant", "text"), Column("owner", type)]) { $0.indexed = ["tenant", "owner"] }
        }
        let draft = Self.draft(owned("as", "text"), owned("bs", "uuid"), owned("cs", "text"))
        #expect(draft.indexCandidates.map(\.field) == ["tenant"] && draft.indexCandidates.first?.classes == 3)
        #expect(draft.record.fields.indexed == nil && draft.record.fields.global.isEmpty)
    }
}
