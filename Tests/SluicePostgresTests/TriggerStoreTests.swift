import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct `The store of database triggers` {
    private static let topic = TriggerTopic(trigger: "on order", topic: "shop.Order", partitions: 4)

    private static func with(_ body: (StoreFixture, PostgresTriggerStore) async throws -> Void) async throws {
        try await StoreFixture.with { fixture in
            try await body(fixture, PostgresTriggerStore(pool: fixture.pool, conninfo: fixture.conninfo))
        }
    }

    @Test func `begins at the present position, once`() async throws {
        try await Self.with { fixture, store in
            try await store.begin(Self.topic, ends: [0: 7, 1: 0])
            let before = try #require(try await fixture.sql("SELECT pg_current_wal_insert_lsn()")[0, 0].flatMap { LSN($0) })
            try await store.begin(Self.topic, ends: [0: 9])
            let opened = try await store.open(Self.topic, ends: [0: 8, 1: 8, 2: 5])
            #expect(opened.mapValues(\.offset) == [0: 7, 1: 0, 2: 5])
            #expect(opened[0].map { $0.position.lsn <= before && $0.position.lsn > .zero } == true)
            #expect(opened[2].map { $0.position.lsn >= before } == true)
            #expect(opened[0]?.turn == 2 && opened[2]?.turn == 1)
        }
    }

    @Test func `moves a cursor for the gateway that opened it last`() async throws {
        try await Self.with { _, store in
            let first = try await store.open(Self.topic, ends: [0: 0, 1: 0])
            let moved = first.mapValues { cursor in
                TriggerCursor(position: Position(lsn: LSN(rawValue: 0x1_0000_0003), ordinal: 7), offset: 12, turn: cursor.turn)
            }
            #expect(try await store.save(Self.topic, moved) == [0, 1])
            let second = try await store.open(Self.topic, ends: [0: 0])
            #expect(second[0]?.position == moved[0]?.position && second[0]?.offset == 12)
            #expect(try await store.save(Self.topic, moved) == [1])
        }
    }

    @Test func `forgets the cursors of a trigger alone`() async throws {
        try await Self.with { _, store in
            let other = TriggerTopic(trigger: "other", topic: "shop.Order", partitions: 4)
            for topic in [Self.topic, other] { _ = try await store.open(topic, ends: [0: 3]) }
            try await store.forget(["on order"])
            #expect(try await store.open(Self.topic, ends: [0: 8])[0]?.offset == 8)
            #expect(try await store.open(other, ends: [0: 8])[0]?.offset == 3)
        }
    }

    @Test func `stores calls that are given up`() async throws {
        try await Self.with { fixture, store in
            try await store.bury(
                TriggerFailure(trigger: "on order", attempts: 12, reason: "no\0answer", event: ["operationType": "a\0b"]))
            let failure = try await fixture.sql("SELECT trigger, attempts, reason, event ->> 'operationType' FROM sluice.trigger_failure")
            #expect((0..<4).map { failure[0, $0] } == ["on order", "12", "no␀answer", "a␀b"])
        }
    }

    @Test func `divides the partitions of a trigger, and takes none with a call under way`() async throws {
        try await Self.with { fixture, store in
            let other = PostgresTriggerStore(pool: fixture.pool, conninfo: fixture.conninfo)
            // Another trigger of the topic has claims of its own.
            let second = TriggerTopic(trigger: "second", topic: "shop.Order", partitions: 4)
            let claims = [
                try await store.claim(Self.topic, keeping: []), try await other.claim(Self.topic, keeping: []),
                try await store.claim(Self.topic, keeping: [0, 1, 2, 3]), try await store.claim(Self.topic, keeping: [0, 1, 3]),
                try await other.claim(Self.topic, keeping: []), try await store.claim(Self.topic, keeping: [0, 1]),
                try await other.claim(Self.topic, keeping: []), try await other.claim(second, keeping: []),
            ]
            let partitions: [Set<Int32>] = [[0, 1, 2, 3], [], [0, 1, 2, 3], [0, 1, 3], [2], [0, 1], [2, 3], [0, 1, 2, 3]]
            #expect(claims.map(\.partitions) == partitions && claims.map(\.share) == [4, 2, 2, 2, 2, 2, 2, 4])
            await store.release(Self.topic)
            let rest = try await other.claim(Self.topic, keeping: [])
            #expect(rest.partitions.count == 4 && rest.share == 4)
            await other.release(Self.topic)
            await other.release(second)
        }
    }
}
