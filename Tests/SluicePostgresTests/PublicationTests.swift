import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization
import Testing

private let item = ObjectType(
    name: "Item", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string, isOptional: true)])
private let other = ObjectType(name: "Other", properties: [Property(id: 1, name: "_id", type: .int)])

private func catalog(_ types: ObjectType...) -> TableCatalog { TableCatalog(schema: Schema(types)) }

@Suite struct `What is published` {
    private static func with(_ body: (PostgresConnection) async throws -> Void) async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            try await CompanionSchema.create(connection)
            try await body(connection)
        }
    }

    private static func ensure(_ catalog: TableCatalog, _ connection: PostgresConnection) async throws -> [String: Bool] {
        let work = try await Publication.ensure(connection, name: "p", tables: catalog.tables)
        #expect(try await Publication.missing(connection, name: "p", tables: catalog.tables) == [])
        return Dictionary(uniqueKeysWithValues: work.map { ($0.table.type, $0.isGap) })
    }

    @Test func `are tables once, with their old rows, and new ones when they come`() async throws {
        try await Self.with { connection in
            _ = try await catalog(item).create(connection)
            #expect(try await Self.ensure(catalog(item), connection) == ["Item": false])
            #expect(try await Self.ensure(catalog(item), connection) == [:])
            _ = try await catalog(other).create(connection)
            #expect(try await Publication.missing(connection, name: "p", tables: catalog(item, other).tables).map(\.type) == ["Other"])
            #expect(try await Self.ensure(catalog(item, other), connection) == ["Other": false])
            let listed = try await connection.query("SELECT count(*) FROM pg_publication_tables WHERE pubname = 'p'").int(0, 0)
            #expect(listed == 2)
            let full = try await connection.query(
                "SELECT count(*) FROM pg_class WHERE relname IN ('Item', 'Other') AND relreplident = 'f'"
            ).int(0, 0)
            #expect(full == 2)
            try await Publication.drop(connection, name: "p")
        }
    }

    @Test(
        arguments: [
            #"DROP TABLE "Item"; CREATE TABLE "Item" (_id bigint PRIMARY KEY, name text)"#,
            #"ALTER TABLE "Item" RENAME TO old; CREATE TABLE "Item" (LIKE old INCLUDING ALL)"#,
            #"ALTER PUBLICATION p DROP TABLE "Item""#, #"ALTER TABLE "Item" REPLICA IDENTITY DEFAULT"#,
        ])
    func `is a table again that was made anew or is not published whole, and who reads it is told`(change: String) async throws {
        try await Self.with { connection in
            _ = try await catalog(item).create(connection)
            _ = try await Self.ensure(catalog(item), connection)
            _ = try await connection.script(change)
            #expect(try await Self.ensure(catalog(item), connection) == ["Item": true])
            #expect(try await Self.ensure(catalog(item), connection) == [:])
        }
    }

    @Test(arguments: ["WHERE (_id > 1)", "(_id)"])
    func `is no part of a table, and the error has the statement after which the whole is published`(part: String) async throws {
        try await Self.with { connection in
            // PostgreSQL 15 brought row filters and column lists.
            guard try await connection.query("SELECT current_setting('server_version_num')::int >= 150000").bool(0, 0) == true else {
                return
            }
            _ = try await catalog(item).create(connection)
            for (change, isGap) in [("CREATE PUBLICATION p FOR", false), ("ALTER PUBLICATION p SET", true)] {
                try await connection.script("\(change) TABLE \"Item\" \(part)")
                #expect(try await Publication.missing(connection, name: "p", tables: catalog(item).tables).map(\.type) == ["Item"])
                let failure = await postgresFailure {
                    _ = try await Publication.ensure(connection, name: "p", tables: catalog(item).tables)
                }
                let error = try #require(failure)
                #expect(error.code == .tableUnfit && error.message.contains("a row filter or a column list for the table public.Item"))
                let statement = try #require(error.fix.firstMatch(of: #/ALTER PUBLICATION .*;/#)?.output)
                try await connection.script(String(statement))
                #expect(try await Self.ensure(catalog(item), connection) == ["Item": isGap])
            }
        }
    }

    @Test func `are the partitions that there are`() async throws {
        try await Self.with { connection in
            _ = try await connection.script(
                """
                CREATE TABLE "Item" (_id bigint PRIMARY KEY, name text) PARTITION BY RANGE (_id);
                CREATE TABLE low PARTITION OF "Item" FOR VALUES FROM (0) TO (10);
                CREATE TABLE high (_id bigint PRIMARY KEY, name text)
                """)
            #expect(try await Self.ensure(catalog(item), connection) == ["Item": false])
            func since() async throws -> Int64 { try await connection.query("SELECT since FROM sluice.published_table").int(0, 0) ?? -1 }
            var before = try await since()
            for change in [
                #"ALTER TABLE "Item" ATTACH PARTITION high FOR VALUES FROM (10) TO (20)"#, "TRUNCATE low",
                // This is in the log, but what it leaves behind is what a TRUNCATE of each would.
                #"TRUNCATE "Item""#, #"ALTER TABLE "Item" DETACH PARTITION low"#,
            ] {
                _ = try await connection.script(change)
                #expect(try await Self.ensure(catalog(item), connection) == ["Item": true])
                // Rows that came with a partition may be older than what devices have seen.
                let now = try await since()
                #expect(now > before)
                before = now
            }
            #expect(try await connection.query("SELECT relreplident FROM pg_class WHERE relname = 'high'")[0, 0] == "f")
        }
    }

    @Test func `is known since when a table is what it is, and a published table without a record is known for long`() async throws {
        try await Self.with { connection in
            func since() async throws -> Int64 { try await connection.query("SELECT since FROM sluice.published_table").int(0, 0) ?? -1 }
            _ = try await catalog(item).create(connection)
            _ = try await Self.ensure(catalog(item), connection)
            let first = try await since()
            #expect(first > 0)
            // Rows that were written meanwhile say so themselves.
            _ = try await connection.script(#"ALTER TABLE "Item" REPLICA IDENTITY DEFAULT"#)
            _ = try await Self.ensure(catalog(item), connection)
            #expect(try await since() == first)
            _ = try await connection.script(#"DROP TABLE "Item"; CREATE TABLE "Item" (_id bigint PRIMARY KEY, name text)"#)
            _ = try await Self.ensure(catalog(item), connection)
            #expect(try await since() > first)
            _ = try await connection.script("DELETE FROM sluice.published_table")
            #expect(try await Self.ensure(catalog(item), connection) == ["Item": false])
            #expect(try await since() == 0)
        }
    }

    @Test func `is no table while somebody writes to it: what they wrote would be in no log`() async throws {
        try await ReplicationFixture.run { fixture in
            _ = try await fixture.connection.script(
                "ALTER PUBLICATION \(SQLQuote.identifier(fixture.names.publication)) DROP TABLE \(fixture.catalog.tables[0].sqlName)")
            let writer = try await PostgresConnection.connect(fixture.conninfo)
            _ = try await writer.script(#"BEGIN; INSERT INTO "Item" VALUES (1, 'before')"#)
            let failure = await postgresFailure {
                _ = try await Publication.ensure(
                    fixture.connection, name: fixture.names.publication, tables: fixture.catalog.tables)
            }
            #expect(failure?.sqlState == "55P03")
            async let published = Publication.ensure(
                fixture.connection, name: fixture.names.publication, tables: fixture.catalog.tables)
            _ = try await writer.script(#"INSERT INTO "Item" VALUES (2, 'before'); COMMIT"#)
            #expect(try await published.map(\.isGap) == [true])
            _ = try await writer.script(#"INSERT INTO "Item" VALUES (3, 'after')"#)
            try await fixture.withStream { stream in
                var (gap, keys) = (LSN.zero, [Int64]())
                let transactions = try await stream.transactions(2) { batch in
                    gap = max(gap, batch.gap)
                    for change in batch.changes {
                        guard case .int(let key)? = change.after.flatMap({ batch.rows.withView($0) { $0.value(0) } }) else { continue }
                        keys.append(key)
                    }
                }
                #expect(keys == [3] && gap > .zero && transactions.map(\.end).contains(gap))
            }
            await writer.close()
        }
    }

    @Test func `makes rows new that came with another table, whoever wrote them and when`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresSnapshotStore(pool: fixture.pool)
            let shape = try StoreFixture.shape("Store")
            _ = try await fixture.sql(
                #"CREATE TABLE other (LIKE "Store" INCLUDING ALL); INSERT INTO other VALUES ('0123456789abcdef01234567', 'Bern')"#)
            let point = try #require(
                try await fixture.sql("SELECT pg_current_xact_id()::text::bigint").int(0, 0).map { UInt64($0) + 1 })
            func keys(_ age: RowAge) async throws -> Int {
                let count = Mutex(0)
                _ = try await untilSeen {
                    try await store.read(
                        choose: { _ in [SnapshotSelection(shape, age: age)] }, rows: { _, _, rows in count.withLock { $0 += rows.count } })
                }
                return count.withLock { $0 }
            }
            let tables = [TableMapping(StoreFixture.store)]
            _ = try await fixture.pool.withConnection { try await Publication.ensure($0, name: "p", tables: tables) }
            _ = try await fixture.sql(#"ALTER TABLE "Store" RENAME TO old; ALTER TABLE other RENAME TO "Store""#)
            _ = try await fixture.pool.withConnection { try await Publication.ensure($0, name: "p", tables: tables) }
            let now = try #require(
                try await fixture.sql("SELECT pg_current_xact_id()::text::bigint").int(0, 0).map { UInt64($0) + 1 })
            for (age, count) in [
                (RowAge.before(point), 0), (.since(point), 1), (.before(now), 1), (.since(now), 0), (.between(point, now), 1),
            ] {
                #expect(try await keys(age) == count, "\(age)")
            }
        }
    }
}
