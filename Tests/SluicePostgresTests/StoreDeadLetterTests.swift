import SluiceCore
import SluicePostgres
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
            while try await fixture.sql(waiting).int(0, 0) == 0 { try await Task.sleep(for: .milliseconds(5)) }
            try await quick()
            _ = try await holder.script("SELECT pg_advisory_unlock(4711)")
            try await stopped
            await holder.close()
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.ingest_rejected").int(0, 0) == 0)
        }
    }
}
