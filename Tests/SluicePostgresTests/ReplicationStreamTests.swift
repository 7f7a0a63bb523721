import SluiceCore
import SluicePorts
import SluicePostgres
import Testing

@Suite struct `A replication stream` {
    @Test func `delivers committed changes with old and new rows, origin and order`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                try await fixture.connection.script(
                    """
                    BEGIN; SELECT pg_logical_emit_message(true, 'sluice', '3:4:5');
                    INSERT INTO "Item" VALUES (1, 'a', 1.5), (2, 'b', NULL); COMMIT;
                    BEGIN; INSERT INTO "Item" VALUES (9, 'never', 0); ROLLBACK;
                    UPDATE "Item" SET name = 'c' WHERE _id = 2;
                    DELETE FROM "Item" WHERE _id = 1
                    """)
                var story: [String] = []
                let transactions = try await stream.transactions(2) { story += $0.story }
                #expect(
                    story == [
                        "insert 0 - -> 1,a,double(1.5)", "insert 1 - -> 2,b,null", "update 0 2,b,null -> 2,c,null",
                        "delete 1 1,a,double(1.5) -> -",
                    ])
                let origin = Origin(client: ClientID(rawValue: 3), changeset: 4, time: HybridTime(rawValue: 5))
                #expect(transactions.map(\.origin) == [origin, nil])
                #expect(transactions[0].lsn < transactions[1].lsn)
            }
        }
    }

    @Test func `delivers the write times of a changeset with the first change of each row`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                // Class and key, then the times, each with its length.
                func entry(_ name: String, _ times: String) -> String {
                    func part(_ bytes: [UInt8]) -> String {
                        ([UInt8(bytes.count), 0, 0, 0] + bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
                    }
                    return part(Array(name.utf8)) + part(Array(times.utf8))
                }
                let message = entry("Item\u{0}1", "one") + entry("Item\u{0}2", "two") + entry("Other\u{0}3", "three") + "ff"
                try await fixture.connection.script(
                    """
                    BEGIN; SELECT pg_logical_emit_message(true, 'sluice', '3:4:5');
                    SELECT pg_logical_emit_message(true, 'sluice-times', '\\x\(message)'::bytea);
                    INSERT INTO "Item" VALUES (2, 'b', NULL), (1, 'a', 1.5), (3, 'c', 0);
                    UPDATE "Item" SET name = 'z' WHERE _id = 1; COMMIT;
                    DELETE FROM "Item" WHERE _id = 2
                    """)
                var times: [String] = []
                _ = try await stream.transactions(2) { batch in
                    times += batch.changes.map { change in
                        String(
                            decoding: batch.rows.arena[Int(change.times.lowerBound)..<Int(change.times.upperBound)], as: UTF8.self)
                    }
                }
                #expect(times == ["two", "one", "", "", ""])
            }
        }
    }

    /// Whoever has seen everything up to the end of the first must still take the second for news.
    @Test func `gives transactions whose commits follow each other directly a position behind the end of the one before`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                let other = try await PostgresConnection.connect(fixture.conninfo)
                for key in 0..<20 {
                    try await fixture.connection.script("BEGIN; INSERT INTO \"Item\" VALUES (\(2 * key), 'a', 1)")
                    try await other.script("BEGIN; INSERT INTO \"Item\" VALUES (\(2 * key + 1), 'b', 1)")
                    try await fixture.connection.script("COMMIT")
                    try await other.script("COMMIT")
                }
                await other.close()
                let transactions = try await stream.transactions(40)
                for (first, second) in zip(transactions, transactions.dropFirst()) {
                    let end = try #require(first.end)
                    #expect(first.lsn <= end && end < second.lsn)
                }
            }
        }
    }

    @Test func `says how far it has read when nothing comes, and repeats only what was not confirmed`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.connection.script("INSERT INTO \"Item\" VALUES (1, 'a', 1)")
            try await fixture.withStream { stream in
                let count = try await stream.transactions(1).count
                #expect(count == 1)
            }
            var end = LSN.zero
            try await fixture.withStream { stream in
                let again = try await stream.transactions(1)
                #expect(again.count == 1)
                end = try #require(again[0].end)
                stream.confirm(end)
            }
            let state = try await ReplicationSlot.state(fixture.connection, name: fixture.names.slot)
            #expect(state?.confirmed == end)
            #expect(state?.isActive == false)
            let now = try #require(LSN(try await fixture.connection.query("SELECT pg_current_wal_lsn()")[0, 0] ?? ""))
            try await fixture.withStream { stream in
                var batch = CaptureBatch()
                let deadline = ContinuousClock.now + .seconds(60)
                while batch.reached < now, .now < deadline { try await stream.next(into: &batch, waitingAtMost: .milliseconds(100)) }
                #expect(batch.reached >= now)
                #expect(batch.isEmpty)
            }
        }
    }

    @Test func `brings a mark at once when nothing else is written`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                let pool = PostgresPool(fixture.conninfo, size: 1)
                let start = ContinuousClock.now
                for _ in 0..<3 {
                    let before = try #require(LSN(try await fixture.connection.query("SELECT pg_current_wal_insert_lsn()")[0, 0] ?? ""))
                    try await WALHeartbeat.write(pool)
                    var batch = CaptureBatch()
                    while batch.reached < before { try await stream.next(into: &batch, waitingAtMost: .seconds(60)) }
                    #expect(batch.transactions.count == 1 && batch.changes.isEmpty)
                }
                // Each wait would last its minute without it.
                #expect(ContinuousClock.now - start < .seconds(30))
                await pool.close()
            }
        }
    }

    @Test func `cuts a transaction larger than a batch into pieces, in bounded memory`() async throws {
        try await ReplicationFixture.run { fixture in
            var configuration = fixture.configuration
            configuration.batchChanges = 100
            try await fixture.withStream(configuration) { stream in
                try await fixture.connection.script(
                    "INSERT INTO \"Item\" SELECT g, 'name ' || g, g FROM generate_series(1, 5000) g")
                var ordinals: [UInt32] = []
                let pieces = try await stream.transactions(1) { batch in
                    #expect(batch.changes.count <= 100)
                    ordinals += batch.changes.map(\.position.ordinal)
                }
                #expect(ordinals == Array(0..<5000))
                #expect(pieces.count == 50 || pieces.count == 51)
                #expect(pieces.dropLast().allSatisfy { $0.end == nil })
                #expect(Set(pieces.map(\.lsn)).count == 1)
            }
        }
    }

    @Test func `keeps the connection alive while nobody takes its batches`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.connection.script(
                "ALTER ROLE CURRENT_USER IN DATABASE \"\(fixture.database)\" SET wal_sender_timeout = '1s'")
            var configuration = fixture.configuration
            configuration.batchChanges = 500
            try await fixture.withStream(configuration) { stream in
                for round in 0..<20 {
                    let start = round * 5_000
                    try await fixture.connection.script(
                        "INSERT INTO \"Item\" SELECT g, repeat('x', 100), g FROM generate_series(\(start), \(start + 4_999)) g")
                    // The server must find its client alive for several times its limit while nothing is taken.
                    try await fixture.connection.script("SELECT pg_sleep(0.25)")
                }
                var count = 0
                _ = try await stream.transactions(20) { count += $0.changes.count }
                #expect(count == 100_000)
            }
        }
    }

    @Test func `refuses a slot that another reads, and one that is not there`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { _ in
                let busy = await postgresFailure { _ = try await ReplicationStream.open(fixture.configuration) }
                #expect(busy?.code == .slotBusy)
                #expect(busy?.isRetriable == true)
                #expect(busy?.message.contains(fixture.names.slot) == true)
                let drop = await postgresFailure { try await ReplicationSlot.drop(fixture.connection, name: fixture.names.slot) }
                #expect(drop?.code == .slotBusy)
            }
            // Closed is free: the next one gets it at once.
            try await fixture.withStream { _ in }
            try await ReplicationSlot.drop(fixture.connection, name: fixture.names.slot)
            let lost = await postgresFailure { _ = try await ReplicationStream.open(fixture.configuration) }
            #expect(lost?.code == .slotLost)
        }
    }

    @Test func `ends with the server's error for every later call when its connection is ended`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                try await fixture.connection.query(
                    "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = $1",
                    [.text(fixture.names.slot)])
                for _ in 0..<2 {
                    let failure = await postgresFailure {
                        var batch = CaptureBatch()
                        try await stream.next(into: &batch, waitingAtMost: .seconds(10))
                    }
                    #expect(failure?.isRetriable == true)
                }
            }
        }
    }

    @Test func `lets a cancelled reader go`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                let task = Task {  // Unstructured because: the test cancels it while it waits.
                    var batch = CaptureBatch()
                    try await stream.next(into: &batch, waitingAtMost: .seconds(60))
                }
                await Task.yield()
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                try await fixture.connection.script("INSERT INTO \"Item\" VALUES (1, 'a', 1)")
                let count = try await stream.transactions(1).count
                #expect(count == 1)
            }
        }
    }

    @Test func `takes large unchanged values from the old row`() async throws {
        try await ReplicationFixture.run { fixture in
            try await fixture.withStream { stream in
                try await fixture.connection.script(
                    """
                    ALTER TABLE "Item" ALTER name SET STORAGE EXTERNAL;
                    INSERT INTO "Item" VALUES (1, repeat('0123456789', 2000), 1);
                    UPDATE "Item" SET price = 2
                    """)
                var names: [Value?] = []
                _ = try await stream.transactions(1) { batch in names += batch.changes.map { batch.row($0.after)?[1] } }
                #expect(
                    names == [.string(String(repeating: "0123456789", count: 2000)), .string(String(repeating: "0123456789", count: 2000))])
            }
        }
    }
}

extension ReplicationFixture {
    var database: String { conninfo.split(separator: "dbname=").last.map(String.init) ?? "" }
}
