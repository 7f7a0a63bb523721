import SluiceCore
import SluicePostgres
import Testing

@Suite(.timeLimit(.minutes(2))) struct `Requests with an idempotency key` {
    private static func key(_ owner: String, user: String = "u", _ key: String = "k") -> IngestRequestStore.Key {
        .init(user: user, key: key, owner: owner)
    }

    @Test func `are led by one at a time, and answered alike ever after`() async throws {
        try await StoreFixture.with { fixture in
            let store = IngestRequestStore(pool: fixture.pool)
            #expect(try await store.claim(Self.key("a"), type: "Reading") == .mine)
            guard case .busy(let seconds) = try await store.claim(Self.key("b"), type: "Reading") else {
                Issue.record("two lead one request")
                return
            }
            #expect((1...IngestRequestStore.leaseSeconds).contains(seconds))
            // Another user's key is another key.
            #expect(try await store.claim(Self.key("c", user: "v"), type: "Reading") == .mine)
            try await store.finish(Self.key("a"), body: [1, 2], status: 207, json: "{}")
            #expect(
                try await store.claim(Self.key("b"), type: "Reading")
                    == .done(.init(type: "Reading", body: [1, 2], status: 207, json: "{}")))
        }
    }

    @Test func `are free again when they were given back, and when their lease is over`() async throws {
        try await StoreFixture.with { fixture in
            let store = IngestRequestStore(pool: fixture.pool)
            #expect(try await store.claim(Self.key("a"), type: "Reading") == .mine)
            try await store.release(Self.key("a"))
            #expect(try await store.claim(Self.key("b"), type: "Reading") == .mine)
            // As if its gateway had died a minute ago.
            _ = try await fixture.pool.withConnection {
                try await $0.execute("UPDATE sluice.ingest_request SET lease_until = now() - interval '1 second'")
            }
            #expect(try await store.claim(Self.key("c"), type: "Reading") == .mine)
            for late in [
                { try await store.renew(Self.key("b")) }, { try await store.finish(Self.key("b"), body: [], status: 200, json: "{}") },
            ] {
                let error = await #expect(throws: SluiceError.self) { try await late() }
                #expect(error?.code == .idempotencyKeyInUse)
            }
            try await store.renew(Self.key("c"))
            try await store.release(Self.key("b"))
            guard case .busy = try await store.claim(Self.key("d"), type: "Reading") else {
                Issue.record("who had lost the key has given it back")
                return
            }
        }
    }

    @Test func `are forgotten after a day`() async throws {
        try await StoreFixture.with { fixture in
            let store = IngestRequestStore(pool: fixture.pool)
            for name in ["old", "new"] {
                #expect(try await store.claim(Self.key("a", name), type: "Reading") == .mine)
                try await store.finish(Self.key("a", name), body: [1], status: 200, json: "{}")
            }
            _ = try await fixture.pool.withConnection {
                try await $0.execute(
                    """
                    UPDATE sluice.ingest_request SET created_at = now() - interval '25 hours', lease_until = now() - interval '25 hours'
                    WHERE key = 'old'
                    """)
            }
            // A key that is only too old is new, whether it was pruned or not.
            #expect(try await store.claim(Self.key("b", "old"), type: "Reading") == .mine)
            try await store.release(Self.key("b", "old"))
            #expect(try await store.claim(Self.key("c", "old"), type: "Reading") == .mine)
            _ = try await fixture.pool.withConnection {
                try await $0.execute(
                    "UPDATE sluice.ingest_request SET created_at = now() - interval '25 hours', lease_until = now() - interval '1 hour' WHERE key = 'old'"
                )
            }
            #expect(try await store.prune() == 1)
            guard case .done = try await store.claim(Self.key("b", "new"), type: "Reading") else {
                Issue.record("an answer was forgotten too early")
                return
            }
        }
    }
}
