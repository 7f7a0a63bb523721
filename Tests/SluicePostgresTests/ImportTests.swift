import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite struct `Rows of an import` {
    private func rows(_ rows: [Row], _ buffer: inout RowBuffer) -> [RowRef] { rows.map { buffer.append($0) } }

    private func texts(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.sql(#"SELECT t::text FROM "Item" t ORDER BY t::text COLLATE "C""#).column(0)
    }

    @Test(arguments: [UInt64.random(in: .min ... .max), 1])
    func `equal those that the gateway writes, for every type of property`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        let items = (0..<50).map { _ in randomItem(&generator) }
        let written = try await StoreFixture.with { fixture in
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
            try await fixture.write(client, changeset: 1) { transaction in
                for row in items { try transaction.write("Item", key: row[0] ?? .null, .insert(row), clocks: .mark(1)) }
            }
            return try await texts(fixture)
        }
        let imported = try await StoreFixture.with { fixture in
            let rowImport = RowImport(try StoreFixture.shape("Item"))
            let (outcome, stored) = try await fixture.pool.withSession { session in
                var buffer = RowBuffer()
                let places = self.rows(items, &buffer)
                let outcome = try session.inTransaction { try rowImport.insert(places, of: buffer, session) }
                return (outcome, try rowImport.stored(session))
            }
            let digest = outcome.written
            #expect(outcome.refused.isEmpty && outcome.unchanged == 0 && digest.rows == 50)
            // Read back, the rows have the digest of those that were sent.
            #expect(stored == digest, "seed \(seed)")
            // One changed value is found.
            _ = try await fixture.sql(#"UPDATE "Item" SET quantity = quantity # 1 WHERE _id = (SELECT min(_id::text)::uuid FROM "Item")"#)
            let changed = try await fixture.pool.withSession { try rowImport.stored($0) }
            #expect(changed.rows == 50 && changed != digest, "seed \(seed)")
            _ = try await fixture.sql(#"UPDATE "Item" SET quantity = quantity # 1 WHERE _id = (SELECT min(_id::text)::uuid FROM "Item")"#)
            return try await texts(fixture)
        }
        #expect(imported == written, "seed \(seed)")
    }

    @Test func `that PostgreSQL refuses are left out one by one, and the others are in`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(#"ALTER TABLE "Item" ADD CHECK (quantity <> 13)"#)
            var generator = SplitMix64(seed: 7)
            var items = (0..<100).map { index in
                var row = randomItem(&generator)
                row[2] = .int(Int64(index))
                return row
            }
            // The row of 13 breaks the check, those of 60 and 61 have the key of 20, and those of 80 and 81 are in the table already.
            // Of these, 61 and 81 are equal to the known ones.
            items[60][0] = items[20][0]
            items[61] = items[20]
            var known = items[80]
            known[2] = .int(-1)
            let equal = items[81]
            let rowImport = RowImport(try StoreFixture.shape("Item"))
            let (before, outcome, after) = try await fixture.pool.withSession { [items, known] session in
                var buffer = RowBuffer()
                let first = self.rows([known, equal], &buffer)
                _ = try session.inTransaction { try rowImport.insert(first, of: buffer, session) }
                let before = try rowImport.stored(session)
                buffer.removeAll()
                let places = self.rows(items, &buffer)
                let outcome = try session.inTransaction { try rowImport.insert(places, of: buffer, session) }
                return (before, outcome, try rowImport.stored(session))
            }
            #expect(outcome.refused.map(\.index) == [13, 60, 80])
            #expect(outcome.refused[0].reason.contains("Item_quantity_check"), "\(outcome.refused[0])")
            #expect(outcome.refused[1].reason == "an earlier document of the collection has the same _id, with other values")
            #expect(outcome.refused[2].reason == "public.Item has a row with this key already, with other values")
            #expect(outcome.unchanged == 2 && outcome.written.rows == 95)
            #expect(after == before + outcome.written && after - before == outcome.written)
        }
    }

    @Test func `of a table that is not there are an error, not refused`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(#"DROP TABLE "Item""#)
            var generator = SplitMix64(seed: 7)
            let item = randomItem(&generator)
            let rowImport = RowImport(try StoreFixture.shape("Item"))
            let failure = await postgresFailure {
                try await fixture.pool.withSession { session in
                    var buffer = RowBuffer()
                    let places = self.rows([item], &buffer)
                    _ = try session.inTransaction { try rowImport.insert(places, of: buffer, session) }
                }
            }
            #expect(failure?.sqlState == "42P01")
        }
    }

    @Test func `are imported by one command of a class at a time`() async throws {
        try await StoreFixture.with { fixture in
            let store = ImportProgressStore()
            let (first, second) = (
                try await PostgresConnection.connect(fixture.conninfo), try await PostgresConnection.connect(fixture.conninfo)
            )
            try await first.withSession { try store.lock("Item", $0) }
            try await second.withSession { try store.lock("Store", $0) }
            let failure = await postgresFailure { try await second.withSession { try store.lock("Item", within: .milliseconds(100), $0) } }
            #expect(failure?.code == .timeout && failure?.message.contains("Another import into class Item") == true)
            // The end of the first connection releases its locks, as that of a killed process does.
            await first.close()
            try await second.withSession { try store.lock("Item", $0) }
            await second.close()
        }
    }

    @Test func `have their progress in the same transaction`() async throws {
        try await StoreFixture.with { fixture in
            let store = ImportProgressStore()
            var progress = ImportProgress(source: "10-ab", type: "Item")
            progress.written = RowDigest(rows: 3, first: .max, second: 5)
            progress.documents = 4
            progress.quarantined = 1
            progress.unchanged = 6
            let saved = try await fixture.pool.withSession { [progress] session in
                try store.create(session)
                try store.create(session)
                var began = progress
                try store.begin(&began, path: "a.bson", stored: RowDigest(rows: 2, first: 1, second: 1), session)
                began.isRead = true
                try store.save(began, path: "b.bson", session)
                // What is rolled back has made no progress.
                var lost = began
                lost.documents = 9
                _ = try? session.inTransaction { [lost] in
                    try store.save(lost, path: "b.bson", session)
                    throw CancellationError()
                }
                return (began, try store.find(source: "10-ab", type: "Item", session), try store.written(type: "Item", session))
            }
            #expect(saved.0 == saved.1 && saved.2 == progress.written)
            #expect(saved.0.foreign == RowDigest(rows: 2, first: 1, second: 1) && saved.0.isRead && !saved.0.isVerified)
            let other = try await fixture.pool.withSession { try store.find(source: "10-ab", type: "Store", $0) }
            #expect(other == nil)
            // The foreign rows of a second source do not include those of the first import.
            let second = try await fixture.pool.withSession { session in
                var second = ImportProgress(source: "11-cd", type: "Item")
                try store.begin(&second, path: "c.bson", stored: RowDigest(rows: 5, first: 0, second: 6), session)
                return second
            }
            #expect(second.foreign == RowDigest(rows: 2, first: 1, second: 1))
        }
    }
}
