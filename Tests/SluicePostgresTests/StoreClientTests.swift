import SluiceCore
import SluicePorts
import SluicePostgres
import Testing

@Suite(.timeLimit(.minutes(3))) struct `Client replicas that come back` {
    @Test func `keep what was refused of a batch until the client has sent so many more that it must have heard`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let (file, other) = (try await store.allot(user: "ann", secret: [1]), try await store.allot(user: "ann", secret: [1]))
            func refused() async throws -> UInt64? { try await store.open(id: file.id, secret: [1], user: "ann").refusedIngest }
            #expect(try await refused() == nil)
            try await store.recordIngest(id: file.id, number: 1)
            try await store.recordIngest(id: file.id, number: 2, answer: [2, 0, 255])
            try await store.recordIngest(id: file.id, number: 3, answer: [3])
            try await store.recordIngest(id: other.id, number: 9, answer: [9])
            #expect(try await refused() == 2)
            #expect(try await store.ingestAnswer(id: file.id, number: 2) == [2, 0, 255])
            #expect(try await store.ingestAnswer(id: file.id, number: 1) == nil)
            for number in 4...UInt64(1 + Limits.ingestWindow) { try await store.recordIngest(id: file.id, number: number) }
            #expect(try await refused() == 2)
            try await store.recordIngest(id: file.id, number: UInt64(2 + Limits.ingestWindow))
            #expect(try await refused() == 3)
            try await store.recordIngest(id: file.id, number: UInt64(3 + Limits.ingestWindow))
            #expect(try await refused() == nil)
            _ = try await fixture.sql("DELETE FROM sluice.client")
            #expect(try await store.ingestAnswer(id: other.id, number: 9) == nil)
        }
    }

    @Test func `keep rejected objects of their changesets as compensating writes, once`() async throws {
        try await StoreFixture.with { fixture in
            let (store, rejections) = (ClientStore(pool: fixture.pool), WriteRejectionStore(pool: fixture.pool))
            let file = try await store.allot(user: "ann", secret: [1])
            let rejected = [(UInt64(3), "a"), (7, "b"), (3, "c")].map { changeset, key in
                WriteRejection(
                    changeset: changeset, object: ObjectKey(type: "Reading", key: .string(key)), code: .writeNotAllowed, reason: "No.",
                    values: ["value": .double(1)])
            }
            let first = try await store.recordIngest(id: file.id, number: 8, rejected: rejected)
            #expect(first.map { $0.writes.map(\.object.key) } == [[.string("a"), .string("c")], [.string("b")]])
            #expect(try #require(first.first).id < #require(first.last).id)
            let open = try await rejections.open(client: file.id)
            #expect(open.map(\.compensation) == first.map(\.id) && open.map(\.writes.first?.changeset) == [3, 7])
            #expect(open.flatMap(\.writes).allSatisfy { $0.values.isEmpty && $0.cause == nil })
            for number in [8, 5] as [UInt64] {
                #expect(try await store.recordIngest(id: file.id, number: number, rejected: rejected).isEmpty)
            }
            #expect(try await rejections.open(client: file.id).count == 2)
            #expect(try await store.open(id: file.id, secret: [1], user: "ann").ingest == 8)
            _ = try await fixture.sql("DELETE FROM sluice.client")
            #expect(try await store.recordIngest(id: file.id, number: 9, rejected: rejected).isEmpty)
        }
    }

    @Test func `a session that waits for a write of the one before keeps no connection from others`() async throws {
        try await StoreFixture.with { fixture in
            let pool = PostgresPool(fixture.conninfo, size: 1)
            let store = ClientStore(pool: pool)
            let rows = PostgresRowStore(pool: pool, waiting: fixture.pool, log: DurableLog(pool: pool), tables: StoreFixture.shape)
            let file = try await store.allot(user: "ann", secret: [1])
            let origin = Origin(client: file.id, changeset: 1)
            let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            async let opening: ClientFile = {
                for await _ in begun { break }
                return try await store.open(id: file.id, secret: [1], user: "ann")
            }()
            _ = try await rows.waitingTransaction { transaction, connection in
                _ = try await connection.withSession { try transaction.open($0, origin, session: file.session) }
                begin.yield()
                try await fixture.waitForBlocked("UPDATE sluice.client%")
                // There is one connection for all of these.
                for _ in 0..<20 { _ = try await pool.withSession(within: .seconds(2)) { try $0.query("SELECT 1") } }
                transaction.finish(origin, time: .zero, base: .zero)
            }
            #expect(try await opening.changeset == 1)
            await pool.close()
        }
    }

    @Test func `note what they sent while a changeset of theirs waits`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let file = try await store.allot(user: "ann", secret: [1])
            let origin = Origin(client: file.id, changeset: 1)
            _ = try await fixture.rows.waitingTransaction { transaction, connection in
                _ = try await connection.withSession { try transaction.open($0, origin, session: file.session) }
                try await store.recordIngest(id: file.id, number: 1)
                try await store.recordIngest(id: file.id, number: 2, answer: [2])
                #expect(try await store.ingestAnswer(id: file.id, number: 2) == [2])
                transaction.finish(origin, time: .zero, base: .zero)
            }
            let opened = try await store.open(id: file.id, secret: [1], user: "ann")
            #expect(opened.changeset == 1 && opened.ingest == 2 && opened.refusedIngest == 2)
            // Nothing is recorded of a client that is gone.
            _ = try await fixture.sql("DELETE FROM sluice.client")
            try await store.recordIngest(id: file.id, number: 6, answer: [6])
            #expect(try await store.ingestAnswer(id: file.id, number: 6) == nil)
        }
    }

    /// A publisher that takes the slot asks for it: what was committed before, it does not read.
    @Test func `tell how far ahead of the clock the latest of their writes can be`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            #expect(try await store.latestWriteTime() == .zero)
            let first = try await store.allot(user: "ann", secret: [1]).id
            let second = try await store.allot(user: "ann", secret: [1]).id
            let third = try await store.allot(user: "ann", secret: [1]).id
            func set(_ time: String, of file: ClientID, seen: String = "now()") async throws {
                _ = try await fixture.sql("UPDATE sluice.client SET last_time = \(time), seen_at = \(seen) WHERE id = \(file.rawValue)")
            }
            let answer = try await fixture.sql("SELECT (extract(epoch FROM now()) * 1000)::bigint")
            let now = try #require(answer.int(0, 0))
            let ahead = HybridTime(milliseconds: now + 180_000, counter: 7)
            try await set("\(ahead.rawValue)", of: first)
            try await set("\(HybridTime(milliseconds: now - 1_000).rawValue)", of: second)
            #expect(try await store.latestWriteTime() == ahead)
            // It merged with the time at which it came and five minutes, which is long ago.
            try await set("\(HybridTime(milliseconds: now + 86_400_000).rawValue)", of: third, seen: "now() - interval '1 hour'")
            #expect(try await store.latestWriteTime() == ahead)
            for time in ["\(HybridTime(milliseconds: now + 86_400_000).rawValue)", "-1"] {
                try await set(time, of: third)
                let latest = try await store.latestWriteTime().milliseconds - now
                #expect((Limits.clockSkewMilliseconds..<Limits.clockSkewMilliseconds + 60_000).contains(latest), "\(time)")
            }
        }
    }
}
