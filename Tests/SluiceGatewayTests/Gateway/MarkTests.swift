import GatewayTestSupport
import SluiceCore
import SluicePostgres
import Testing

/// Whoever waits for what is committed now waits for the way through the log, not for others to write.
@Suite(.timeLimit(.minutes(5))) struct `Marks of an idle gateway` {
    @Test func `are answered without anything being written, many at once too`() async throws {
        try await RunningGateway.with { gateway in
            // A table that nobody publishes moves the log's end, and nothing comes through the slot.
            let writer = try await PostgresConnection.connect(gateway.conninfo)
            _ = try await writer.script("CREATE TABLE aside (n int)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            var times: [Duration] = []
            for number in 1...40 {
                _ = try await writer.script("INSERT INTO aside VALUES (1)")
                let start = ContinuousClock.now
                try await session.sendMark(UInt64(number))
                try await session.receive { $0.mark == UInt64(number) }
                times.append(.now - start)
            }
            // With the slot's signs of life, which come within a second, it would be half of that for one in two. A busy machine delays
            // some.
            #expect(times.sorted()[20] < .milliseconds(300), "\(times)")
            _ = try await writer.script("INSERT INTO aside VALUES (1)")
            for number in 41...300 { try await session.sendMark(UInt64(number)) }
            var reached: Set<UInt64> = []
            try await session.receive {
                reached.insert($0.mark)
                return reached.isSuperset(of: 41...300)
            }
            session.close()
            await writer.close()
        }
    }

    @Test func `are answered where the database refuses to write messages`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(
                """
                ALTER FUNCTION pg_logical_emit_message(boolean, text, text) RENAME TO hidden_message;
                ALTER FUNCTION pg_logical_emit_message(boolean, text, bytea) RENAME TO hidden_message
                """)
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            for number in 1...3 {
                try await gateway.sql(
                    "CREATE TABLE aside\(number) (n int); INSERT INTO orders (_id, store, size) VALUES ('\(number)', 'north', 1)")
                try await session.sendMark(UInt64(number))
                try await session.receive { $0.mark == UInt64(number) }
                #expect(session.keys("Order").count == number)
            }
            session.close()
        }
    }
}
