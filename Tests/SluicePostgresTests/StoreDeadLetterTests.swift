import SluiceCore
import SluicePostgres
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(3))) struct `Letters that are told and sent again at the same time` {
    /// The side that writes this column stops before it does, until the other is done.
    @Test(arguments: ["published", "gone"])
    func `leave the table, whichever is first`(column: String) async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                "INSERT INTO sluice.ingest_rejected (type, source, code, reason, object) VALUES ('R', 's', 800, 'r', '{}')")
            let holder = try await PostgresConnection.connect(fixture.conninfo)
            _ = try await holder.script(
                """
                CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;
                CREATE TRIGGER stop BEFORE UPDATE OF \(column) ON sluice.ingest_rejected FOR EACH STATEMENT EXECUTE FUNCTION stop();
                SELECT pg_advisory_lock(4711)
                """)
            let letters = DeadLetterStore(pool: fixture.pool)
            let id = try #require(try await letters.list(DeadLetterStore.Filter(), limit: 1).first?.id)
            let (told, sent) = ({ try await letters.markPublished([id]) }, { try await letters.leave([id], untold: false) })
            let (slow, quick) = column == "published" ? (told, sent) : (sent, told)
            async let stopped: Void = slow()
            let waiting = """
                SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """
            try #require(try await eventually { try await fixture.sql(waiting).int(0, 0) != 0 })
            try await quick()
            _ = try await holder.script("SELECT pg_advisory_unlock(4711)")
            try await stopped
            await holder.close()
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 0)
        }
    }
}

@Suite struct `Letters for the topic` {
    @Test func `are read so far as the topic takes them, and not too many at once`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql(
                """
                INSERT INTO sluice.ingest_rejected (type, source, code, reason, object, bytes, published) VALUES
                    ('R', 's', 801, 'r', repeat('é', 30), NULL, false), ('R', 's', 801, 'r', 'short', '\\x00ff', false),
                    ('R', 's', 801, 'r', 'told', NULL, true), ('R', 's', 801, 'r', 'x', decode(repeat('ab', 30), 'hex'), false),
                    ('R', 's', 801, 'r', 'last', NULL, false)
                """)
            let letters = DeadLetterStore(pool: fixture.pool)
            let all = try await letters.unpublished(limit: 10, characters: 20, bytes: 1_000)
            #expect(all.map(\.object) == [String(repeating: "é", count: 20), "short", "x", "last"])
            #expect(all.map(\.isCut) == [true, false, true, false])
            #expect(all.map { $0.bytes?.count } == [nil, 2, 20, nil])
            // Each counts as what is read of it: 20, 7, 21 and 4.
            #expect(try await letters.unpublished(limit: 10, characters: 20, bytes: 20).map(\.object).count == 1)
            #expect(try await letters.unpublished(limit: 10, characters: 20, bytes: 21).map(\.object).count == 2)
            #expect(try await letters.unpublished(limit: 3, characters: 20, bytes: 1_000).map(\.object).count == 3)
            #expect(try await letters.list(DeadLetterStore.Filter(), limit: 1).first?.object.count == 30)
        }
    }
}
