import Logging
import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization
import Testing

/// Generated columns that the WAL lacks, in tables that change while they are read.
@Suite struct `Generated columns in the WAL` {
    private static func type(isRequired: Bool = false) -> ObjectType {
        ObjectType(
            name: "Item",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "price", type: .int, isOptional: true),
                Property(id: 3, name: "qty", type: .int, isOptional: true),
                Property(id: 4, name: "first", type: .int, isOptional: !isRequired),
                Property(id: 5, name: "second", type: .int, isOptional: true),
            ])
    }

    /// A slot on one table, and the table's facts as the gateway knows them.
    private final class Stage: Sendable {
        let connection: PostgresConnection
        let capture: PostgresCapture
        let schema: Schema
        private let known: Known

        final class Known: Sendable {
            let state: Mutex<(tables: [TableMapping], revision: Int)>
            init(_ tables: [TableMapping]) { state = Mutex((tables, 0)) }
        }

        init(_ connection: PostgresConnection, _ conninfo: String, _ pool: PostgresPool, _ type: ObjectType) async throws {
            self.connection = connection
            schema = Schema([type])
            let catalog = TableCatalog(schema: schema)
            let names = ReplicationNames(app: "generated_\(UInt64.random(in: .min ... .max))")
            _ = try await Publication.ensure(connection, name: names.publication, tables: catalog.tables)
            _ = try await ReplicationSlot.ensure(connection, name: names.slot)
            let known = Known(try await catalog.found(connection).tables)
            self.known = known
            capture = PostgresCapture(
                conninfo: conninfo, names: names,
                tables: CapturedTables({ _ in known.state.withLock(\.tables) }, revision: { known.state.withLock(\.revision) }),
                bounds: RowBounds(), pool: pool, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        /// Reads the facts of the table again, as the gateway does every five seconds.
        func refresh() async throws {
            let found = try await TableCatalog(schema: schema).found(connection).tables
            known.state.withLock { $0 = (found, $0.revision + 1) }
            try await Publication.announceGap(connection, tables: found)
        }

        func sql(_ text: String) async throws { try await connection.script(text) }

        /// Reads until so many transactions with changes or reports have come, or the batch is outdated.
        func read(_ count: Int) async throws -> (story: [String], unfit: [UnfitRow], gap: LSN, isOutdated: Bool) {
            var (story, unfit, transactions): ([String], [UnfitRow], Int) = ([], [], 0)
            var (batch, gap) = (CaptureBatch(), LSN.zero)
            let deadline = ContinuousClock.now + .seconds(60)
            while transactions < count, .now < deadline {
                batch = try await capture.next(batch, milliseconds: 1_000)
                if batch.isOutdated { return (story, unfit, gap, true) }
                #expect(batch.uncomputed.isEmpty)
                story += batch.story
                unfit += batch.unfit
                gap = max(gap, batch.gap)
                transactions += batch.transactions.count
            }
            return (story, unfit, gap, false)
        }
    }

    private static func with(
        _ table: String, isRequired: Bool = false, _ body: @Sendable (Stage) async throws -> Void
    ) async throws {
        try await TestPostgres.withDatabase { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            try await connection.script(table)
            let pool = PostgresPool(conninfo, size: 2)
            let stage = try await Stage(connection, conninfo, pool, type(isRequired: isRequired))
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(stage)) } catch { outcome = .failure(error) }
            await stage.capture.close()
            await pool.close()
            await connection.close()
            try outcome.get()
        }
    }

    private static let table = """
        CREATE TABLE "Item" (
            _id bigint PRIMARY KEY, price bigint, qty bigint, first bigint GENERATED ALWAYS AS (price * 2) STORED,
            second bigint GENERATED ALWAYS AS (qty * 3) STORED)
        """

    @Test func `are computed as the WAL describes the table, whatever the gateway knows of it`() async throws {
        try await Self.with(Self.table) { stage in
            _ = try await stage.capture.open(stage.schema)
            try await stage.sql(#"INSERT INTO "Item" VALUES (1, 10, 10)"#)
            try await stage.sql(#"ALTER TABLE "Item" ALTER COLUMN first DROP EXPRESSION"#)
            try await stage.sql(#"INSERT INTO "Item" VALUES (2, 10, 10, 7); UPDATE "Item" SET qty = 20, first = 8 WHERE _id = 2"#)
            let read = try await stage.read(2)
            #expect(read.story == ["insert 0 - -> 1,10,10,20,30", "insert 0 - -> 2,10,10,7,30", "update 1 2,10,10,7,30 -> 2,10,20,8,60"])
        }
    }

    @Test func `have the values of a new formula once it is known, and readers of the table begin again`() async throws {
        try await Self.with(Self.table) { stage in
            _ = try await stage.capture.open(stage.schema)
            try await stage.sql(#"INSERT INTO "Item" VALUES (1, 10, 10)"#)
            #expect(try await stage.read(1).story == ["insert 0 - -> 1,10,10,20,30"])
            try await stage.sql(
                #"ALTER TABLE "Item" DROP COLUMN first; ALTER TABLE "Item" ADD COLUMN first bigint GENERATED ALWAYS AS (price * 100) STORED"#
            )
            try await stage.sql(#"INSERT INTO "Item" VALUES (2, 10, 10)"#)
            try await stage.refresh()
            #expect(try await stage.read(1).isOutdated, "what was decoded by the old formula is not published")
            await stage.capture.close()
            _ = try await stage.capture.open(stage.schema)
            let again = try await stage.read(3)
            // The slot has confirmed nothing, so the first row arrives again.
            #expect(again.story == ["insert 0 - -> 1,10,10,1000,30", "insert 0 - -> 2,10,10,1000,30"])
            #expect(again.gap > .zero)
        }
    }

    @Test func `of a row for which the formula fails make that row unfit, and stop nothing`() async throws {
        try await Self.with(#"CREATE TABLE "Item" (_id bigint PRIMARY KEY, price bigint, qty bigint, second bigint)"#) { stage in
            _ = try await stage.capture.open(stage.schema)
            await stage.capture.close()
            try await stage.sql(
                #"INSERT INTO "Item" SELECT g, 12, CASE g WHEN 3 THEN 0 ELSE g END, NULL FROM generate_series(1, 4) g"#)
            try await stage.sql(#"UPDATE "Item" SET qty = 6 WHERE _id = 3; DELETE FROM "Item" WHERE _id = 4"#)
            try await stage.sql(#"ALTER TABLE "Item" ADD COLUMN first bigint GENERATED ALWAYS AS (price / qty) STORED"#)
            try await stage.refresh()
            _ = try await stage.capture.open(stage.schema)
            let read = try await stage.read(2)
            #expect(
                read.story == [
                    "insert 0 - -> 1,12,1,12,null", "insert 1 - -> 2,12,2,6,null", "insert 3 - -> 4,12,4,3,null",
                    "insert 0 - -> 3,12,6,2,null", "delete 1 4,12,4,3,null -> -",
                ])
            #expect(read.unfit.map(\.key) == ["3", "3"] && read.unfit.map { $0.position.ordinal } == [2, 0])
            #expect(read.unfit.first?.reason?.contains("first: PostgreSQL cannot compute the value") == true)
            #expect(read.unfit.first?.reason?.contains("division by zero") == true && read.unfit.last?.reason == nil)
        }
    }

    @Test func `without a value make a row unfit whose property is required`() async throws {
        try await Self.with(Self.table, isRequired: true) { stage in
            _ = try await stage.capture.open(stage.schema)
            try await stage.sql(#"INSERT INTO "Item" VALUES (1, NULL, 10), (2, 1, 10)"#)
            let read = try await stage.read(1)
            #expect(read.story == ["insert 1 - -> 2,1,10,2,30"])
            #expect(read.unfit.map(\.key) == ["1"] && read.unfit.first?.reason == "first: it is NULL and the property is required")
        }
    }
}
