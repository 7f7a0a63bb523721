import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite struct `The ingest store` {
    private func store(_ fixture: StoreFixture) -> PostgresIngestStore {
        PostgresIngestStore(pool: fixture.pool, conninfo: fixture.conninfo, tables: StoreFixture.shape)
    }

    private func readings(_ keys: some Sequence<Int>, sensor: String = "s") -> [IngestRow] {
        keys.map { reading(.int(Int64($0)), .string(sensor), .double(Double($0) / 2)) }
    }

    private func reading(_ values: Value...) -> IngestRow {
        IngestRow(
            type: "Reading", row: Row(values),
            record: IngestRecord(type: "Sent", bytes: Array(ExtendedJSON.json(values[0]).text.utf8)[...], offset: 7))
    }

    @Test func `writes rows and offset together, and repeats nothing`() async throws {
        try await StoreFixture.with { fixture in
            let store = store(fixture)
            #expect(try await store.offsets(topic: "t", partitions: [0, 1]) == [0: 0, 1: 0])
            let first = try await store.commit(IngestOutcome(topic: "t", partition: 1, offsets: 0..<100, accepted: readings(0..<100)))
            #expect(first.written == 100 && first.refused == 0)
            // The same keys again, in later records.
            let second = try await store.commit(IngestOutcome(topic: "t", partition: 1, offsets: 100..<150, accepted: readings(90..<140)))
            #expect(second.written == 40)
            #expect(try await store.offsets(topic: "t", partitions: [0, 1]) == [0: 0, 1: 150])
            #expect(try await fixture.sql("SELECT count(*), sum(value) FROM \"Reading\"")[0, 0] == "140")
        }
    }

    @Test func `stops a stale sink by name and writes nothing of it`() async throws {
        try await StoreFixture.with { fixture in
            let store = store(fixture)
            try await store.commit(IngestOutcome(topic: "t", partition: 0, offsets: 0..<10, accepted: readings(0..<10)))
            for offsets in [Int64(0)..<20, 5..<20, 11..<20] {
                let error = await #expect(throws: SluiceError.self) {
                    try await store.commit(IngestOutcome(topic: "t", partition: 0, offsets: offsets, accepted: readings(50..<60)))
                }
                #expect(error?.code == .badMessageOrder)
            }
            #expect(try await fixture.sql("SELECT count(*) FROM \"Reading\"").int(0, 0) == 10)
        }
    }

    @Test func `of two sinks with one offset exactly one gets through`() async throws {
        try await StoreFixture.with { fixture in
            let store = store(fixture)
            let batches = (0..<4).map {
                IngestOutcome(topic: "t", partition: 0, offsets: 0..<10, accepted: readings($0 * 10..<$0 * 10 + 10))
            }
            let winners = await withTaskGroup(of: Bool.self) { group in
                for batch in batches { group.addTask { (try? await store.commit(batch)) != nil } }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(winners == 1)
            let count = try await fixture.sql("SELECT count(*) FROM \"Reading\"").int(0, 0)
            #expect(count == 10)
        }
    }

    @Test func `keeps what PostgreSQL refuses and writes the rest`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("ALTER TABLE \"Reading\" ADD CHECK (value < 10), ADD UNIQUE (sensor, value)")
            let store = store(fixture)
            var accepted = readings(0..<30)
            accepted.append(reading(.int(100), .string("nul\0"), .null))
            accepted.append(reading(.int(101), .string("s"), .double(1)))
            accepted.append(reading(.int(102), .null, .null))
            let record = IngestRecord(type: "Reading", bytes: Array("{\0".utf8)[...])
            let refused = RejectedObject(record: record, code: .ingestMalformed, reason: "not JSON \0")
            let outcome = try await store.commit(
                IngestOutcome(topic: "t", partition: 3, offsets: 0..<40, accepted: accepted, refused: [refused]))
            #expect(outcome.written == 20 && outcome.refused == 13)
            let kept = try await fixture.sql(
                "SELECT code, reason, object, source, bytes, log_offset, type FROM sluice.ingest_rejected ORDER BY id")
            #expect(kept.count == 14 && kept[0, 0] == "801" && kept[0, 1] == "not JSON ␀" && kept[0, 2] == "{␀" && kept[0, 3] == "t/3")
            #expect(kept[1, 0] == "800" && kept[1, 1]?.contains("check constraint") == true)
            #expect(kept[0, 4] == "\\x7b00" && kept[0, 5] == nil)
            let place = try #require(kept.column(2).firstIndex(of: "101"))
            #expect(kept[place, 4] == nil && kept[place, 5] == "7" && kept[place, 6] == "Sent")
            #expect(try await store.offsets(topic: "t", partitions: [3]) == [3: 40])
        }
    }

    /// Of no two equal stretches, so that PostgreSQL cannot make it small enough for an index.
    private static func incompressible(_ count: Int) -> String {
        var generator = SplitMix64(seed: 1)
        return String(
            (0..<count).map { _ in
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".randomElement(using: &generator) ?? "a"
            })
    }

    @Test func `keeps what is too much for an index, and what fails for a reason of its own where others do not`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                CREATE INDEX ON "Reading" (sensor);
                CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF NEW.value = 3 THEN EXECUTE 'SELECT nothing FROM nowhere'; END IF; RETURN NEW; END $$;
                CREATE TRIGGER look BEFORE INSERT ON "Reading" FOR EACH ROW EXECUTE FUNCTION look()
                """)
            let store = store(fixture)
            let large = reading(.int(100), .string(Self.incompressible(6_000)), .null)
            let first = try await store.commit(
                IngestOutcome(topic: "t", partition: 0, offsets: 0..<31, accepted: readings(0..<30) + [large]))
            #expect(first.written == 29 && first.refused == 2)
            let kept = try await fixture.sql("SELECT object, reason FROM sluice.ingest_rejected ORDER BY object")
            #expect(kept.column(0) == ["100", "6"] && kept[0, 1]?.contains("54000") == true && kept[1, 1]?.contains("42P01") == true)
            // Alone it may be the table that is at fault.
            await #expect(throws: SluiceError.self) {
                try await store.commit(
                    IngestOutcome(topic: "t", partition: 0, offsets: 31..<32, accepted: [reading(.int(200), .string("s"), .double(3))]))
            }
            #expect(try await store.offsets(topic: "t", partitions: [0]) == [0: 31])
            // What no row can be put into refuses none.
            _ = try await fixture.sql("ALTER TABLE \"Reading\" DROP COLUMN value CASCADE")
            await #expect(throws: SluiceError.self) {
                try await store.commit(IngestOutcome(topic: "t", partition: 0, offsets: 31..<731, accepted: readings(300..<1_000)))
            }
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 2)
        }
    }

    @Test func `keeps what a deferred constraint refuses, and writes what it refuses only before the end`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                ALTER TABLE "Store" ADD UNIQUE (city);
                ALTER TABLE "Reading" ADD FOREIGN KEY (sensor) REFERENCES "Store" (city) DEFERRABLE INITIALLY DEFERRED
                """)
            let store = store(fixture)
            // Readings are written before stores.
            let bergen = IngestRow(
                type: "Store", row: Row([.objectId(ObjectIdentifierBytes(high: 1, low: 1)), .string("Bergen")]),
                record: IngestRecord(type: "Store", bytes: []))
            let first = try await store.commit(
                IngestOutcome(topic: "t", partition: 0, offsets: 0..<11, accepted: readings(0..<10, sensor: "Bergen") + [bergen]))
            #expect(first.written == 11 && first.refused == 0)
            let accepted = readings([10], sensor: "Ys") + readings(11..<40, sensor: "Bergen")
            let second = try await store.commit(IngestOutcome(topic: "t", partition: 0, offsets: 11..<41, accepted: accepted))
            #expect(second.written == 29 && second.refused == 1)
            let kept = try await fixture.sql("SELECT object, reason FROM sluice.ingest_rejected")
            #expect(kept.column(0) == ["10"] && kept[0, 1]?.contains("foreign key") == true)
            #expect(try await store.offsets(topic: "t", partitions: [0]) == [0: 41])
        }
    }

    @Test(arguments: ["42P01", "0A000"])
    func `finds those that go in behind any number that fail for a reason of their own`(code: String) async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF NEW.sensor = 'bad' THEN RAISE EXCEPTION 'no' USING ERRCODE = '\(code)'; END IF; RETURN NEW; END $$;
                CREATE TRIGGER look BEFORE INSERT ON "Reading" FOR EACH ROW EXECUTE FUNCTION look()
                """)
            let store = store(fixture)
            let accepted = readings(0..<40, sensor: "bad") + readings(40..<100)
            let outcome = try await store.commit(IngestOutcome(topic: "t", partition: 0, offsets: 0..<100, accepted: accepted))
            #expect(outcome.written == 60 && outcome.refused == 40)
            #expect(try await fixture.sql("SELECT count(*), min(_id) FROM \"Reading\"").int(0, 1) == 40)
        }
    }

    @Test func `refuses nothing that only waits for somebody else's row`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                "DO $$ BEGIN EXECUTE format($q$ALTER DATABASE %I SET statement_timeout = '1s'$q$, current_database()); END $$")
            // Of connections that begin now.
            let pool = PostgresPool(fixture.conninfo, size: 2)
            let store = PostgresIngestStore(pool: pool, conninfo: fixture.conninfo, tables: StoreFixture.shape)
            let batch = IngestOutcome(topic: "t", partition: 0, offsets: 0..<6, accepted: readings(0..<6))
            try await fixture.pool.withConnection { other in
                try await other.script("BEGIN; INSERT INTO \"Reading\" VALUES (5, 'theirs', 0)")
                let error = await #expect(throws: SluiceError.self) { try await store.commit(batch) }
                #expect(error?.operatorText.contains("SQLSTATE 57014") == true)
                try await other.script("ROLLBACK")
            }
            let outcome = try await store.commit(batch)
            #expect(outcome.written == 6 && outcome.refused == 0)
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 0)
            await pool.close()
        }
    }

    @Test func `writes what came of several partitions together, or nothing of it`() async throws {
        try await StoreFixture.with { fixture in
            let store = store(fixture)
            _ = try await fixture.sql("ALTER TABLE \"Reading\" ADD CHECK (value < 30)")
            try await store.commit(IngestOutcome(topic: "t", partition: 1, offsets: 0..<5, accepted: readings(0..<5)))
            let bad = RejectedObject(
                record: IngestRecord(type: "Reading", bytes: [], partition: LogPartition("t", 4), offset: 3), code: .ingestMalformed,
                reason: "no")
            let objects = readings(5..<65)
            var flat = RowBuffer()
            let rows = objects.map { flat.append($0.row) }
            func batch(_ offsets: [Int32: Range<Int64>]) -> IngestOutcome {
                var accepted = AcceptedObjects(ObjectType(name: "Reading", properties: [], primaryKey: nil))
                accepted.buffer = flat
                accepted.rows = rows
                accepted.records = rows.indices.map {
                    IngestRecord(type: "Sent", bytes: Array("object \($0)".utf8)[...], partition: LogPartition("t", Int32($0)))
                }
                return IngestOutcome(topic: "t", offsets: offsets, accepted: [accepted], refused: [bad])
            }
            for stale in [[1: 5..<9, 4: 3..<9], [1: 4..<9, 4: 0..<9]] as [[Int32: Range<Int64>]] {
                await #expect(throws: SluiceError.self) { try await store.commit(batch(stale)) }
            }
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 0)
            #expect(try await store.offsets(topic: "t", partitions: [1, 4]) == [1: 5, 4: 0])
            let outcome = try await store.commit(batch([1: 5..<9, 4: 0..<9]))
            #expect(outcome.written == 55 && outcome.refused == 5)
            #expect(try await store.offsets(topic: "t", partitions: [1, 4]) == [1: 9, 4: 9])
            let kept = try await fixture.sql("SELECT source FROM sluice.ingest_rejected ORDER BY id").column(0)
            #expect(kept == ["t/4", "t/55", "t/56", "t/57", "t/58", "t/59"])
            // Sent again for want of an answer, objects that are refused are the letters that there are; what cannot be read is another.
            #expect(try await store.commit(batch([1: 9..<13, 4: 9..<18])).refused == 5)
            #expect(try await fixture.sql("SELECT source FROM sluice.ingest_rejected ORDER BY id").column(0) == kept + ["t/4"])
        }
    }

    @Test(arguments: [UInt64.random(in: .min ... .max), 2])
    func `writes every type of property`(seed: UInt64) async throws {
        try await StoreFixture.with { fixture in
            var generator = SplitMix64(seed: seed)
            let rows = (0..<50).map { _ in randomItem(&generator) }
            let outcome = try await store(fixture).insert(
                rows.map { IngestRow(type: "Item", row: $0, record: IngestRecord(type: "Item", bytes: [])) })
            #expect(outcome.written == 50 && outcome.refused == 0, "seed \(seed)")
            let loaded = try await fixture.rows.transaction { try $0.load($1, "Item", keys: rows.compactMap { $0[0] }) }.result
            for row in rows { #expect(loaded[row[0] ?? .null]?.row == row, "seed \(seed)") }
        }
    }

    @Test func `shares a topic's partitions among all that ask`() async throws {
        try await StoreFixture.with { fixture in
            let (first, second, third) = (store(fixture), store(fixture), store(fixture))
            let alone = try await first.claim(topic: "t", partitions: 5)
            #expect(alone == [0, 1, 2, 3, 4])
            #expect(try await first.claim(topic: "t", partitions: 5) == alone)
            // The second finds nothing free until the first has given up what is beyond its share.
            #expect(try await second.claim(topic: "t", partitions: 5) == [])
            #expect(try await first.claim(topic: "t", partitions: 5) == [0, 1, 2])
            #expect(try await second.claim(topic: "t", partitions: 5) == [3, 4])
            #expect(try await second.claim(topic: "other", partitions: 2) == [0, 1])
            #expect(try await third.claim(topic: "t", partitions: 5) == [])
            #expect(try await first.claim(topic: "t", partitions: 5) == [0, 1])
            #expect(try await third.claim(topic: "t", partitions: 5) == [2])
            await first.release(topic: "t")
            #expect(try await third.claim(topic: "t", partitions: 5) == [0, 1, 2])
            #expect(try await second.claim(topic: "t", partitions: 5) == [3, 4])
        }
    }

    @Test(.timeLimit(.minutes(1))) func `is asked by nobody whose claim came to no end`() async throws {
        try await StoreFixture.with { fixture in
            let (first, second) = (store(fixture), store(fixture))
            var cut = 0
            for round in 0..<150 {
                let claim = Task { try await first.claim(topic: "t", partitions: 5) }
                // Each round cancels at a later moment of the claim.
                let pause = Duration.microseconds(20 * round)
                try await Task.sleep(for: pause)
                claim.cancel()
                if (try? await claim.value) == nil {
                    cut += 1
                    // What it held for good nobody would give back, nor read. The server needs a moment to see the connection's end.
                    var claimed = try await second.claim(topic: "t", partitions: 5)
                    while claimed.count < 5, !Task.isCancelled {
                        await second.release(topic: "t")
                        claimed = try await second.claim(topic: "t", partitions: 5)
                    }
                    try #require(claimed == [0, 1, 2, 3, 4], "cut after \(pause)")
                    await second.release(topic: "t")
                }
                await first.release(topic: "t")
            }
            #expect(cut > 0)
        }
    }

    @Test func `more of them than partitions wait, and take over from one that is gone`() async throws {
        try await StoreFixture.with { fixture in
            let stores = (0..<3).map { _ in store(fixture) }
            var held: [Set<Int32>] = []
            for store in stores { held.append(try await store.claim(topic: "t", partitions: 2)) }
            for (index, store) in stores.enumerated() { held[index] = try await store.claim(topic: "t", partitions: 2) }
            for (index, store) in stores.enumerated() { held[index] = try await store.claim(topic: "t", partitions: 2) }
            #expect(held.map(\.count).sorted() == [0, 1, 1] && Set(held.joined()) == [0, 1])
            // The loss of the connection gives everything back; whose it was begins anew.
            let holder = try #require(held.firstIndex { $0 == [0] })
            _ = try await fixture.sql(
                """
                SELECT pg_terminate_backend(pid, 5000) FROM pg_locks
                WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND pid <> pg_backend_pid()
                    AND (classid::bigint << 32) | objid::bigint = hashtextextended('sluice.ingest t/0', 0)
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """)
            let waiting = try #require(held.firstIndex { $0.isEmpty })
            #expect(try await stores[waiting].claim(topic: "t", partitions: 2) == [0])
            // It meets the loss with an error or, when libpq has seen it already, by connecting again.
            #expect(((try? await stores[holder].claim(topic: "t", partitions: 2)) ?? []) == [])
        }
    }
}
