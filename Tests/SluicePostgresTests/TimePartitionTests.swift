import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import Testing

@Suite struct `A table that is cut by time` {
    private static let weather = ObjectType(
        name: "Weather", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "at", type: .timestamp)])
    private static let schema = Schema([weather])
    /// 2026-11-20, 12:00 UTC, a Friday.
    private static let noon: Int64 = 1_795_176_000

    private struct Weather {
        let fixture: StoreFixture
        let catalog: TableCatalog
        let partitions: TimePartitionStore

        func write(_ objects: [(key: Int64, days: Int64)]) async throws -> (written: Int, refused: Int) {
            let mapping = try #require(catalog["Weather"])
            let store = PostgresIngestStore(
                pool: fixture.pool, conninfo: fixture.conninfo, tables: { _ in try TableShape(weather, in: schema, mapping: mapping) })
            return try await store.insert(
                objects.map { key, days in
                    IngestRow(
                        type: "Weather", row: Row([.int(key), .timestamp(Timestamp(seconds: noon + days * 86_400))]),
                        record: IngestRecord(type: "Weather", bytes: []))
                })
        }

        func keep(day: Int64) async throws -> PartitionWork {
            let outcomes = try await partitions.keep(now: noon + day * 86_400)
            return try #require(outcomes.first).outcome.get()
        }

        func names() async throws -> [String] {
            try await fixture.sql("SELECT relid::regclass FROM pg_partition_tree('weather') WHERE level = 1 ORDER BY 1").column(0).sorted()
        }
    }

    private func with(_ cut: TimePartitions, _ body: (Weather) async throws -> Void) async throws {
        try await StoreFixture.with { fixture in
            let mapping = TableMapping(Self.weather, table: "weather", partitions: cut)
            let catalog = TableCatalog(schema: Self.schema, tables: [mapping])
            try await fixture.pool.withConnection { connection in
                _ = try await catalog.create(connection)
                try await catalog.requireFit(connection)
                try await catalog.notePartitions(connection)
            }
            try await body(Weather(fixture: fixture, catalog: catalog, partitions: TimePartitionStore(pool: fixture.pool)))
        }
    }

    @Test func `has partitions to two days ahead, and moves what came before into its own`() async throws {
        try await with(TimePartitions(property: "at", period: .day)) { weather in
            let first = try await weather.write([(1, -3), (2, 0), (3, 1), (4, 9)])
            #expect(first.written == 4)
            #expect(try await weather.names() == ["weather_default"])
            let work = try await weather.keep(day: 0)
            #expect(work.made.sorted() == ["20261117", "20261120", "20261121", "20261122"] && work.dropped == [])
            // What lies further ahead waits for its time.
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather_default").int(0, 0) == 1)
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather_20261121").int(0, 0) == 1)
            #expect(try await weather.keep(day: 0).made == [])
            #expect(try await weather.keep(day: 8).made.contains("20261129"))
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather_default").int(0, 0) == 0)
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather").int(0, 0) == 4)
        }
    }

    @Test func `knows an object that comes again by its key and its time`() async throws {
        try await with(TimePartitions(property: "at", period: .month)) { weather in
            _ = try await weather.keep(day: 0)
            let first = try await weather.write([(1, 0), (2, 40)])
            let second = try await weather.write([(1, 0), (2, 40), (2, 41), (3, 0)])
            #expect(first.written == 2 && second.written == 2 && second.refused == 0)
            #expect(try await weather.names() == ["weather_20261101", "weather_20261201", "weather_20270101", "weather_default"])
        }
    }

    @Test func `drops what is older than it keeps`() async throws {
        try await with(TimePartitions(property: "at", period: .week, keepDays: 10)) { weather in
            let written = try await weather.write([(1, -1), (2, -9), (3, -30), (4, 0)])
            #expect(written.written == 4)
            let work = try await weather.keep(day: 0)
            #expect(work.made.sorted() == ["20261109", "20261116", "20261123", "20261130"] && work.deleted == 1, "\(work)")
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather").int(0, 0) == 3)
            let later = try await weather.keep(day: 7)
            #expect(later.dropped == ["weather_20261109"] && later.made == ["20261207"], "\(later)")
            #expect(try await weather.fixture.sql("SELECT count(*) FROM weather").int(0, 0) == 2)
        }
    }

    @Test func `waits no longer than five seconds for somebody who holds it, and goes on at the next look`() async throws {
        try await with(TimePartitions(property: "at", period: .day)) { weather in
            let other = try await PostgresConnection.connect(weather.fixture.conninfo)
            _ = try await other.script("BEGIN; LOCK TABLE weather_default IN ACCESS EXCLUSIVE MODE")
            await #expect(throws: (any Error).self) { try await weather.keep(day: 0) }
            _ = try await other.script("ROLLBACK")
            await other.close()
            #expect(try await weather.keep(day: 0).made.count == 3)
        }
    }

    @Test func `is asked for where there is one in one piece: that is said, and the table left alone`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("CREATE TABLE weather (_id bigint PRIMARY KEY, at timestamptz NOT NULL)")
            let mapping = TableMapping(Self.weather, table: "weather", partitions: TimePartitions(property: "at", period: .day))
            let catalog = TableCatalog(schema: Self.schema, tables: [mapping])
            try await fixture.pool.withConnection { connection in
                let plan = try await catalog.plan(connection)
                #expect(plan.statements == [] && plan.misfits.count == 1)
                #expect(plan.misfits.first?.message.contains("is not partitioned by range of “at”") == true)
            }
        }
    }
}
