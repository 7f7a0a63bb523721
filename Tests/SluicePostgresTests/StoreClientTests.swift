import SluiceCore
import SluicePostgres
import Testing

    @Test func `a session that waits for a write of the one before keeps no connection from others`() async throws {
        try await StoreFixture.with { fixture in
            let pool = PostgresPool(fixture.conninfo, size: 1)
            let store = ClientStore(pool: pool)
            let rows = PostgresRowStore(pool: pool, waiting: fixture.pool, log: DurableLog(pool: pool), tables: StoreFixture.shape)
            let file = try await store.allot(user: "ann", secret: [1])
            let origin = Origin(client: file.id, changeset: 1)
            let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            async let opening: ClientRecord = {
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
            #expect(try await opening.lastChangeset == 1)
            await pool.close()
        }
    }
}
