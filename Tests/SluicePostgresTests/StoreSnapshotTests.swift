import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization
import TestSupport
import Testing

@Suite struct `A snapshot` {
    @Test func `reads every selection in chunks, as the database was when it began`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                INSERT INTO "Reading" SELECT g, 's' || g % 3, g / 4.0 FROM generate_series(1, 5000) g;
                INSERT INTO "Store" VALUES ('00000000000000010000000a', 'Oslo'), ('00000000000000010000000b', 'Bergen')
                """)
            let store = PostgresSnapshotStore(pool: fixture.pool)
            let selections = [
                SnapshotSelection(try StoreFixture.shape("Reading"), where: "sensor = $1 AND value < $2", ["s1", "1000"]),
                SnapshotSelection(try StoreFixture.shape("Store")),
            ]
            let seen = Mutex<[Int: [Row]]>([:])
            let chunks = Mutex<[Int]>([])
            let identity = try await untilSeen {
                try await store.read(selections) { _, _ in
                    // What is written now comes by the stream, not by the snapshot.
                    _ = try await fixture.sql(
                        "INSERT INTO \"Store\" VALUES ('00000000000000010000000c', 'Narvik'); DELETE FROM \"Reading\"")
                    return true
                } rows: { selection, buffer, rows in
                    chunks.withLock { $0.append(rows.count) }
                    seen.withLock { $0[selection, default: []] += rows.map { buffer.withView($0) { Row($0) } } }
                }
            }
            let rows = seen.withLock { $0 }
            #expect(rows[0]?.count == 1_333 && rows[0]?.allSatisfy { $0[1] == .string("s1") } == true)
            #expect(Set((rows[1] ?? []).compactMap { $0[1] }) == [.string("Oslo"), .string("Bergen")])
            #expect(chunks.withLock { $0.allSatisfy { $0 <= Limits.bootstrapRows } })
            let later = try await store.currentLSN()
            #expect(identity.lsn < later)
        }
    }

    @Test func `tells which transactions it sees`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresSnapshotStore(pool: fixture.pool)
            let before = try await fixture.sql("INSERT INTO \"Reading\" VALUES (1, 's', 1); SELECT pg_current_xact_id()").int(0, 0)
            let after = Mutex<Int64?>(nil)
            let snapshot = try await untilSeen {
                try await store.read([]) { _, _ in
                    let xid = try await fixture.sql("INSERT INTO \"Reading\" VALUES (2, 's', 1); SELECT pg_current_xact_id()").int(0, 0)
                    after.withLock { $0 = xid }
                    return true
                } rows: { _, _, _ in
                }
            }.snapshot
            #expect(snapshot.sees(xid: UInt32(truncatingIfNeeded: try #require(before))))
            #expect(!snapshot.sees(xid: UInt32(truncatingIfNeeded: try #require(after.withLock { $0 }))))
        }
    }

    @Test func `tells rows that have been written since a point from older ones, subtransactions and running ones included`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresSnapshotStore(pool: fixture.pool)
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, 's', g FROM generate_series(1, 6) g")
            // Other tests have transactions on the same server; those that are older than the rows have to end first.
            let last = try #require(try await fixture.sql("SELECT pg_current_xact_id()::text::bigint").int(0, 0))
            let isPast = "SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint > \(last))::int"
            try #require(try await eventually { try await fixture.sql(isPast).int(0, 0) != 0 })
            // It began before the point and commits after it: what it wrote is new, in a savepoint too.
            let running = try await PostgresConnection.connect(fixture.conninfo)
            _ = try await running.script("BEGIN; UPDATE \"Reading\" SET value = 0 WHERE _id = 1; SAVEPOINT a")
            _ = try await running.script("UPDATE \"Reading\" SET value = 0 WHERE _id = 2; RELEASE a")
            _ = try await fixture.sql("UPDATE \"Reading\" SET value = 0 WHERE _id = 3")
            let point = try await untilSeen {
                try await store.read([]) { _, _ in
                    true
                } rows: { _, _, _ in
                }
            }.snapshot.xmin
            _ = try await running.script("COMMIT")
            _ = try await fixture.sql("UPDATE \"Reading\" SET value = 0 WHERE _id = 4; DELETE FROM \"Reading\" WHERE _id = 5")
            let shape = try StoreFixture.shape("Reading")
            let seen = Mutex<[Int: Set<Int64>]>([:])
            let identity = try await untilSeen {
                try await store.read(
                    choose: { _ in
                        [
                            SnapshotSelection(shape, where: "sensor = $1", ["s"], age: .before(point), keysOnly: true),
                            SnapshotSelection(shape, where: "sensor = $1", ["s"], age: .since(point)),
                        ]
                    },
                    rows: { selection, buffer, rows in
                        for row in rows {
                            guard case .int(let key)? = buffer.withView(row, { $0.value(0) }) else { continue }
                            seen.withLock { _ = $0[selection, default: []].insert(key) }
                        }
                    })
            }
            let (old, new) = seen.withLock { ($0[0] ?? [], $0[1] ?? []) }
            // Row 3 was written while an older transaction ran, so it may come again; those written later must.
            #expect(old.isSubset(of: [3, 6]) && old.contains(6))
            #expect(new.isSuperset(of: [1, 2, 4]) && new.union(old) == [1, 2, 3, 4, 6] && new.isDisjoint(with: old))
            #expect(identity.cluster.split(separator: "-").count == 3)
            await running.close()
        }
    }

    @Test(arguments: [0, 1, 255, 256, 257, 300])
    func `has the same rows whether the view is small or not, and knows how many a small one has`(count: Int) async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                INSERT INTO "Reading" SELECT g, 's', g FROM generate_series(1, \(count)) g;
                INSERT INTO "Store" VALUES ('00000000000000010000000a', 'Oslo')
                """)
            let (reading, store) = (try StoreFixture.shape("Reading"), try StoreFixture.shape("Store"))
            let first = SnapshotSelection(
                reading, first: .init(limit: count, order: "t0.value DESC NULLS LAST, t0._id", row: "t0"))
            for selections in [[SnapshotSelection(reading)], [SnapshotSelection(store), SnapshotSelection(reading)], [first]] {
                let keys = Mutex<[Set<Value>]>(selections.map { _ in [] })
                let steps = Mutex<[String]>([])
                try await untilSeen {
                    try await PostgresSnapshotStore(pool: fixture.pool).read(
                        choose: { _ in selections },
                        begin: { _ in
                            steps.withLock { $0.append("begin") }
                            return true
                        },
                        expected: { rows in
                            let isExact = count + selections.count - 1 <= PostgresSnapshotStore.smallRows
                            #expect(!isExact || rows == count + selections.count - 1)
                            steps.withLock { $0.append("expected") }
                        },
                        rows: { selection, buffer, rows in
                            let found = rows.compactMap { buffer.withView($0) { $0.value(0) } }
                            keys.withLock { $0[selection].formUnion(found) }
                            steps.withLock { if $0.last != "rows" { $0.append("rows") } }
                        })
                }
                let all = Set((0..<count).map { Value.int(Int64($0 + 1)) })
                #expect(keys.withLock { $0.last } == all)
                #expect(steps.withLock { $0.prefix(2) } == ["begin", "expected"])
            }
        }
    }

    /// The planner alone would give a guess that is wrong by orders of magnitude.
    @Test func `of a large view knows about how many rows come, without statistics too`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                ALTER TABLE "Reading" SET (autovacuum_enabled = false);
                INSERT INTO "Reading" SELECT g, CASE WHEN g % 10 = 0 THEN 't' ELSE 's' END, g FROM generate_series(1, 60000) g
                """)
            let reading = try StoreFixture.shape("Reading")
            let first = SnapshotSelection(reading, first: .init(limit: 700, order: "t0.value DESC, t0._id", row: "t0"))
            let selections: [(SnapshotSelection, ClosedRange<UInt64>)] = [
                (SnapshotSelection(reading), 45_000...75_000),
                (SnapshotSelection(reading, where: "sensor = $1", [.text("t")]), 4_000...8_000),
                (SnapshotSelection(reading, where: "sensor = $1 AND value > 30000", [.text("t")]), 1_500...5_000),
                // Rarer than the sample can show.
                (SnapshotSelection(reading, where: "sensor = $1 OR _id < 400", [.text("none")]), 1...2_000),
                (first, 700...700),
            ]
            for analyze in [false, true] {
                if analyze { _ = try await fixture.sql("ANALYZE \"Reading\"") }
                for (selection, expected) in selections {
                    let rows = Mutex<UInt64?>(nil)
                    try await untilSeen {
                        try await PostgresSnapshotStore(pool: fixture.pool).read(
                            choose: { _ in [selection] }, begin: { _ in true }, expected: { count in rows.withLock { $0 = count } },
                            rows: { _, _, _ in })
                    }
                    let said = rows.withLock { $0 }
                    let estimate = try #require(said)
                    #expect(expected.contains(estimate), "\(selection.condition), \(analyze ? "with" : "without") statistics: \(estimate)")
                }
            }
        }
    }

    @Test func `of a view that is small by rows and not by bytes comes whole`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, repeat('s', 100000), g FROM generate_series(1, 40) g")
            let rows = Mutex(0)
            let chunks = Mutex(0)
            let selection = SnapshotSelection(try StoreFixture.shape("Reading"))
            try await untilSeen {
                try await PostgresSnapshotStore(pool: fixture.pool).read([selection]) { _, _ in
                    true
                } rows: { _, _, refs in
                    rows.withLock { $0 += refs.count }
                    chunks.withLock { $0 += 1 }
                }
            }
            #expect(rows.withLock { $0 } == 40 && chunks.withLock { $0 } > 1)
        }
    }

    @Test func `outlives a column that changes under a prepared statement`() async throws {
        try await StoreFixture.with { fixture in
            let pool = PostgresPool(fixture.conninfo, size: 1)
            let store = PostgresSnapshotStore(pool: pool)
            func values() async throws -> [Value?] {
                let values = Mutex<[Value?]>([])
                let selection = SnapshotSelection(try StoreFixture.shape("Reading"))
                try await untilSeen {
                    try await store.read([selection]) { _, _ in
                        true
                    } rows: { _, buffer, rows in
                        values.withLock { $0 += rows.map { buffer.withView($0) { $0.value(2) } } }
                    }
                }
                return values.withLock { $0 }
            }
            _ = try await fixture.sql("INSERT INTO \"Reading\" VALUES (1, 's', 1)")
            #expect(try await values() == [.double(1)])
            _ = try await fixture.sql("ALTER TABLE \"Reading\" ALTER value TYPE real")
            #expect(try await values() == [.double(1)])
            #expect(try await values() == [.double(1)])
            await pool.close()
        }
    }

    @Test func `is given up when its beginning says so`() async throws {
        try await StoreFixture.with { fixture in
            let identity = try await PostgresSnapshotStore(pool: fixture.pool).read([SnapshotSelection(try StoreFixture.shape("Store"))]) {
                _, _ in
                false
            } rows: { _, _, _ in
                Issue.record("rows of a snapshot that was given up")
            }
            #expect(identity == nil)
        }
    }

    @Test func `leaves out rows that do not fit and says so`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                ALTER TABLE "Store" ALTER city DROP NOT NULL;
                INSERT INTO "Store" VALUES ('00000000000000010000000a', NULL), ('00000000000000010000000b', 'Bergen')
                """)
            let reports = Mutex<[String]>([])
            let store = PostgresSnapshotStore(pool: fixture.pool) { type, key, reason in
                reports.withLock { $0.append("\(type) \(key): \(reason)") }
            }
            let count = Mutex(0)
            let selection = SnapshotSelection(try StoreFixture.shape("Store"))
            try await untilSeen {
                try await store.read([selection]) { _, _ in
                    true
                } rows: { _, buffer, rows in
                    count.withLock { $0 += rows.count }
                    #expect(rows.map { buffer.withView($0) { $0.value(1) } } == [.string("Bergen")])
                }
            }
            #expect(count.withLock { $0 } == 1)
            #expect(reports.withLock { $0 } == ["Store 00000000000000010000000a: city: it is NULL and the property is required"])
        }
    }

    @Test func `waits for its reader and ends with its error`() async throws {
        struct Full: Error {}
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, 's', 0 FROM generate_series(1, 100000) g")
            let chunks = Mutex(0)
            await #expect(throws: Full.self) {
                let selection = SnapshotSelection(try StoreFixture.shape("Reading"))
                try await untilSeen {
                    try await PostgresSnapshotStore(pool: fixture.pool).read([selection]) { _, _ in
                        true
                    } rows: { _, _, _ in
                        if chunks.withLock({
                            $0 += 1; return $0
                        }) == 2 {
                            throw Full()
                        }
                    }
                }
            }
            #expect(chunks.withLock { $0 } == 2)
            // The connection is clean again.
            #expect(try await fixture.sql("SELECT 1").int(0, 0) == 1)
        }
    }
}
