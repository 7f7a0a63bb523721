import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Synchronization
import Testing

@Suite struct `Waiting for the disk` {
    @Test func `is done once for all who came before it began, and again for those who came meanwhile`() async throws {
        let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .unbounded)
        let (released, release) = AsyncStream<Void>.makeStream(bufferingPolicy: .unbounded)
        let writes = Mutex(0)
        let log = DurableLog {
            writes.withLock { $0 += 1 }
            begin.yield()
            for await _ in released { break }
        }
        let first = Task { try await log.flush() }  // Unstructured because: the group below waits for what comes after it.
        for await _ in begun { break }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { try await log.flush() } }
            while log.waiting < 20 { await Task.yield() }
            release.yield()
            try await first.value
            release.yield()
            try await group.waitForAll()
        }
        #expect(writes.withLock { $0 } == 2)
        release.yield()
        try await log.flush()
        #expect(writes.withLock { $0 } == 3)
    }

    @Test func `fails for all who waited for the write that failed, and for nobody after`() async throws {
        let failures = Mutex(1)
        let log = DurableLog {
            let fails = failures.withLock { left in
                left -= 1
                return left >= 0
            }
            if fails { throw SluiceError(.postgresUnreachable, "The disk is gone.") }
        }
        await #expect(throws: SluiceError.self) { try await log.flush() }
        try await log.flush()
    }

    @Test func `has what was committed before it in the log of a slot`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("SELECT pg_create_logical_replication_slot('durable', 'test_decoding')")
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
            let lsn = try await fixture.write(client, changeset: 1) { _ in }
            try await fixture.rows.durable()
            let flushed = try await fixture.sql("SELECT pg_current_wal_flush_lsn()")[0, 0].flatMap { LSN($0) }
            #expect(try #require(flushed) >= lsn)
            let log = try await fixture.sql("SELECT data FROM pg_logical_slot_get_changes('durable', NULL, NULL)").column(0)
            #expect(log.contains { $0.contains("content:\(client.rawValue):1") })
            _ = try await fixture.sql("SELECT pg_drop_replication_slot('durable')")
        }
    }
}

@Suite struct `Statements that share a round trip` {
    @Test func `are undone together when one of them fails, and the connection goes on`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
            let keys = (1...300).map { Value.objectId(ObjectIdentifierBytes(high: 1, low: UInt32($0))) }
            _ = try await fixture.sql("ALTER TABLE \"Store\" ADD CHECK (city <> '299')")
            @Sendable func write(_ last: String) async throws {
                try await fixture.write(client, changeset: 1) { transaction in
                    for (number, key) in keys.enumerated() {
                        let city = number == 299 ? last : "\(number)"
                        try transaction.write("Store", key: key, .insert(Row([key, .string(city)])), clocks: .mark(0))
                    }
                }
            }
            let error = await #expect(throws: SluiceError.self) { try await write("299") }
            #expect(error?.code == .writeNotAllowed)
            #expect(try await fixture.sql("SELECT count(*) FROM \"Store\"").int(0, 0) == 0)
            try await write("elsewhere")
            #expect(try await fixture.sql("SELECT count(*) FROM \"Store\"").int(0, 0) == 300)
        }
    }

    @Test func `may be of more texts than a connection keeps prepared`() async throws {
        try await StoreFixture.with { fixture in
            let client = try await ClientStore(pool: fixture.pool).allot(user: "ann", secret: [1]).id
            let key = Value.objectId(ObjectIdentifierBytes(high: 1, low: 1))
            try await fixture.write(client, changeset: 1) {
                try $0.write("Store", key: key, .insert(Row([key, .string("a")])), clocks: .mark(0))
            }
            let results = try await fixture.pool.withConnection { connection in
                try await connection.withSession { session in
                    try session.pipeline((0..<600).map { PostgresStatement("SELECT \($0) FROM \"Store\"") }).map { $0.int(0, 0) }
                }
            }
            #expect(results == (0..<600).map { Int64($0) })
        }
    }
}
