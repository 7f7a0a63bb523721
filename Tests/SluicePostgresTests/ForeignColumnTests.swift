import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Synchronization
import Testing

/// Writes into tables of other programs, whose keys and columns PostgreSQL treats in ways of its own.
@Suite struct `Writes into tables of other programs` {
    private static func property(_ id: UInt32, _ name: String, _ type: PropertyType, isOptional: Bool = true) -> Property {
        Property(id: id, name: name, type: type, isOptional: isOptional)
    }

    private static func with(
        _ sql: String, _ type: ObjectType, _ body: @Sendable (StoreFixture, TableShape) async throws -> Void
    ) async throws {
        try await StoreFixture.with { fixture in
            let catalog = TableCatalog(schema: Schema([type]))
            let mapping = try await fixture.pool.withConnection { connection in
                try await connection.script(sql)
                try await catalog.requireFit(connection)
                return try await catalog.found(connection).tables[0]
            }
            try await body(fixture, try TableShape(type, in: catalog.schema, mapping: mapping))
        }
    }

    private static func code(_ write: () async throws -> Void) async -> SluiceError? {
        do {
            try await write()
            return nil
        } catch let refused as DatabaseRejection {
            return refused.error
        } catch {
            return error as? SluiceError
        }
    }

    // MARK: Keys in each partition

    private static let visits = """
        CREATE TABLE "Visit" (_id bigint NOT NULL, code text, part int NOT NULL DEFAULT 1) PARTITION BY LIST (part);
        CREATE TABLE "Visit one" PARTITION OF "Visit" FOR VALUES IN (1);
        CREATE UNIQUE INDEX ON "Visit one" (_id); CREATE UNIQUE INDEX ON "Visit one" (code);
        INSERT INTO "Visit" VALUES (1, 'a')
        """

    private static func visit(_ kind: ObjectKind = .topLevel) -> ObjectType {
        ObjectType(name: "Visit", kind: kind, properties: [property(1, "_id", .int, isOptional: false), property(2, "code", .string)])
    }

    @Test func `with a key in each partition reject what another constraint excludes, and find what has the key`() async throws {
        try await Self.with(Self.visits, Self.visit()) { fixture, shape in
            #expect(shape.mapping.hasKeyPerPartition)
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            func insert(_ key: Int64, _ code: String) async -> SluiceError? {
                await Self.code {
                    _ = try await rows.transaction { transaction, _ in
                        try transaction.write("Visit", key: .int(key), .insert(Row([.int(key), .string(code)])), clocks: .mark(1))
                    }
                }
            }
            #expect(await insert(2, "b") == nil)
            let excluded = await insert(3, "a")
            #expect(excluded?.code == .writeNotAllowed && excluded?.message.contains("a value that must be unique is in use") == true)
            // The row is there: the store reads again and never finds a reason.
            #expect(await insert(1, "c")?.message.contains("gave no reason") == true)
            let left = try await fixture.sql(#"SELECT string_agg(_id || code, ' ' ORDER BY _id) FROM "Visit""#)[0, 0]
            #expect(left == "1a 2b")
        }
    }

    @Test func `of two transactions that insert one key into a partition, the second finds the row`() async throws {
        try await Self.with(Self.visits, Self.visit()) { fixture, shape in
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            let other = try await PostgresConnection.connect(fixture.conninfo)
            try await other.script(#"BEGIN; INSERT INTO "Visit" VALUES (9, 'theirs')"#)
            async let found = rows.waitingTransaction { transaction, connection in
                let found = try await connection.withSession { try transaction.load($0, "Visit", keys: [.int(9)]) }
                if found[.int(9)]?.row == nil {
                    try transaction.write("Visit", key: .int(9), .insert(Row([.int(9), .string("ours")])), clocks: .mark(1))
                }
                return found[.int(9)]?.row?[1]
            }.result
            try await fixture.waitForBlocked("WITH clock AS%")
            try await other.script("COMMIT")
            #expect(try await found == .string("theirs"))
            await other.close()
        }
    }

    @Test func `of asymmetric objects lose none: each is written, exists, or is kept as rejected`() async throws {
        try await Self.with(Self.visits, Self.visit(.asymmetric)) { fixture, shape in
            let store = PostgresIngestStore(pool: fixture.pool, conninfo: fixture.conninfo, tables: { _ in shape })
            func visit(_ key: Int64, _ code: String) -> IngestRow {
                IngestRow(
                    type: "Visit", row: Row([.int(key), .string(code)]),
                    record: IngestRecord(type: "Visit", bytes: Array("\(key)".utf8)[...], offset: key))
            }
            let outcome = try await store.insert(
                [visit(1, "z"), visit(2, "b"), visit(2, "c"), visit(3, "a"), visit(4, "d"), visit(5, "b")])
            #expect(outcome.written == 2 && outcome.refused == 2)
            #expect(try await fixture.sql(#"SELECT string_agg(_id || code, ' ' ORDER BY _id) FROM "Visit""#)[0, 0] == "1a 2b 4d")
        }
    }

    // MARK: Keys that the column changes

    @Test func `reject a key that the column does not keep`() async throws {
        let type = ObjectType(
            name: "Code", properties: [Self.property(1, "_id", .string, isOptional: false), Self.property(2, "text", .string)])
        try await Self.with(#"CREATE TABLE "Code" (_id char(4) PRIMARY KEY, text text)"#, type) { fixture, shape in
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            func insert(_ key: String) async -> SluiceError? {
                await Self.code {
                    _ = try await rows.transaction { transaction, _ in
                        let key = Value.string(key)
                        try transaction.write("Code", key: key, .insert(Row([key, .null])), clocks: .mark(1))
                    }
                }
            }
            #expect(await insert("AB") == nil)
            let refused = await insert("CD ")
            #expect(refused?.code == .writeNotAllowed && refused?.message.contains("does not keep this value of Code._id") == true)
            let count = try await fixture.sql(#"SELECT count(*) FROM "Code""#).int(0, 0)
            #expect(count == 1)
        }
    }

    @Test func `find, lock and write rows by keys that are values of an enum, and find none by other keys`() async throws {
        let type = ObjectType(
            name: "State", properties: [Self.property(1, "_id", .string, isOptional: false), Self.property(2, "text", .string)])
        let table = "CREATE TYPE state AS ENUM ('open', 'b\"a,d', ''); CREATE TABLE \"State\" (_id state PRIMARY KEY, text text)"
        try await Self.with(table, type) { fixture, shape in
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            func write(_ key: String, _ write: StoredWrite) async -> SluiceError? {
                await Self.code {
                    _ = try await rows.transaction { transaction, _ in
                        try transaction.write("State", key: .string(key), write, clocks: .mark(1))
                    }
                }
            }
            let keys = ["open", "b\"a,d", ""]
            for key in keys { #expect(await write(key, .insert(Row([.string(key), .string("x")]))) == nil) }
            let refused = await write("shut", .insert(Row([.string("shut"), .null])))
            #expect(refused?.code == .writeNotAllowed && refused?.message.contains("State._id cannot be \"shut\"") == true)
            // With the value, the same key is written.
            _ = try await fixture.sql("ALTER TYPE state ADD VALUE 'shut'")
            #expect(await write("shut", .insert(Row([.string("shut"), .null]))) == nil)
            #expect(await write("open", .update([1: .string("y")])) == nil)
            #expect(await write("", .delete) == nil)
            for wanted in [["gone"], ["open", "gone", "", "shut"]] {
                let found = try await rows.waitingTransaction { transaction, connection in
                    try await connection.withSession { try transaction.load($0, "State", keys: wanted.map { .string($0) }) }
                }.result
                let known = Set(found.filter { $0.value.row != nil }.map(\.key))
                #expect(known == Set(wanted.filter { ["open", "shut"].contains($0) }.map { Value.string($0) }))
            }
            #expect(try await fixture.sql(#"SELECT concat(_id, text) FROM "State" ORDER BY 1"#).column(0) == ["b\"a,dx", "openy", "shut"])
        }
    }

    @Test func `are read in the order of the texts of their keys, from a key that no row has`() async throws {
        let type = ObjectType(name: "State", properties: [Self.property(1, "_id", .string, isOptional: false)])
        let sql = """
            CREATE TYPE state AS ENUM ('open', 'a', 'shut', 'Z'); CREATE TABLE "State" (_id state PRIMARY KEY);
            INSERT INTO "State" SELECT unnest(enum_range(NULL::state)); INSERT INTO "Reading" SELECT g, 's', 1 FROM generate_series(1, 5000) g
            """
        try await Self.with(sql, type) { fixture, shape in
            let store = PostgresSnapshotStore(pool: fixture.pool)
            let selections = [
                SnapshotSelection(shape, isInOrder: true), SnapshotSelection(shape, keys: .after("b"), isInOrder: true),
                // A large view, whose rows are streamed.
                SnapshotSelection(try StoreFixture.shape("Reading")),
            ]
            let seen = Mutex<[Int: [Value?]]>([:])
            _ = try await store.read(selections) { _, _ in
                true
            } rows: { selection, buffer, rows in
                seen.withLock { $0[selection, default: []] += rows.map { buffer.withView($0) { Row($0)[0] } } }
            }
            let keys = seen.withLock { $0 }
            #expect(keys[0] == ["Z", "a", "open", "shut"].map { .string($0) } && keys[1] == ["open", "shut"].map { .string($0) })
            #expect(keys[2]?.count == 5_000)
        }
    }

    @Test func `reject a text that is no time or duration, and keep what is one in its normal form`() async throws {
        let type = ObjectType(
            name: "Shift",
            properties: [
                Self.property(1, "_id", .int, isOptional: false), Self.property(2, "start", .string),
                Property(id: 3, name: "breaks", type: .string, collection: .list), Self.property(4, "ends", .string),
            ])
        let table = #"CREATE TABLE "Shift" (_id bigint PRIMARY KEY, start time, breaks interval[], ends timetz)"#
        try await Self.with(table, type) { fixture, shape in
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            func insert(_ key: Int64, _ start: String, _ pause: String, _ end: String = "17:30Z") async -> SluiceError? {
                await Self.code {
                    _ = try await rows.transaction { transaction, _ in
                        let row = Row([.int(key), .string(start), .list([.string(pause)]), .string(end)])
                        try transaction.write("Shift", key: .int(key), .insert(row), clocks: .mark(1))
                    }
                }
            }
            #expect(await insert(1, "08:30", "PT90M") == nil)
            let start = await insert(2, "8 o'clock", "PT1H")
            #expect(start?.code == .writeNotAllowed && start?.message.contains("Shift.start cannot be \"8 o'clock\"") == true)
            let pause = await insert(3, "08:30", "1 hour")
            #expect(pause?.code == .writeNotAllowed && pause?.message.contains("Shift.breaks cannot be \"1 hour\"") == true)
            let end = await insert(4, "08:30", "PT1H", "17:30 CET")
            #expect(end?.message.contains("Shift.ends cannot be \"17:30 CET\"") == true && end?.message.contains("12:30:00+02") == true)
            let found = try await fixture.sql(#"SELECT concat_ws(' ', _id, start, breaks, ends) FROM "Shift""#).column(0)
            #expect(found == ["1 08:30:00 {PT1H30M} 17:30:00+00"])
        }
    }

    // MARK: Release from the quarantine

    private static func unfit(_ keys: [String]) -> [UnfitRow] {
        keys.map { UnfitRow(position: Position(lsn: LSN(rawValue: 5), ordinal: 0), type: 0, key: $0, reason: "it did not fit") }
    }

    @Test func `release a row of the quarantine by a column that is no identity`() async throws {
        let type = ObjectType(
            name: "Line",
            properties: [
                Self.property(1, "_id", .int, isOptional: false), Self.property(2, "seq", .int), Self.property(3, "text", .string),
            ])
        let table = #"CREATE TABLE "Line" (_id bigint PRIMARY KEY, seq bigint GENERATED ALWAYS AS IDENTITY, text text)"#
        try await Self.with(#"\#(table); INSERT INTO "Line" (_id) VALUES (1)"#, type) { fixture, shape in
            let store = QuarantineStore(pool: fixture.pool)
            try await store.record(Self.unfit(["1"]), types: ["Line"])
            #expect(try await store.release({ _ in shape }, limit: 10) == 1)
            #expect(try await store.count() == 0)
        }
    }

    @Test func `release the other rows of the quarantine if one cannot be written`() async throws {
        let type = ObjectType(
            name: "Line", properties: [Self.property(1, "_id", .int, isOptional: false), Self.property(2, "text", .string)])
        let sql = """
            CREATE TABLE "Line" (_id bigint PRIMARY KEY, text text); INSERT INTO "Line" SELECT g FROM generate_series(1, 4) g;
            CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'it is sealed' USING ERRCODE = 'ZZ001'; END $$;
            CREATE TRIGGER no BEFORE UPDATE ON "Line" FOR EACH ROW WHEN (OLD._id = 2) EXECUTE FUNCTION no()
            """
        try await Self.with(sql, type) { fixture, shape in
            let store = QuarantineStore(pool: fixture.pool)
            try await store.record(Self.unfit(["1", "2", "3", "4"]), types: ["Line"])
            #expect(try await store.release({ _ in shape }, limit: 10) == 3)
            let left = try await store.list()
            #expect(left.map(\.key) == ["2"] && left.first?.reason.contains("it is sealed") == true, "\(left)")
        }
    }
}
