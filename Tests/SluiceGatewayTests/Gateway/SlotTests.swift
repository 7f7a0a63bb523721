import GatewayTestSupport
import Logging
import SluiceCore
import SluicePostgres
import SluiceWire
import Testing

/// The replication slot is taken away under a gateway that has sessions.
@Suite(.timeLimit(.minutes(3))) struct `A replication slot that is made anew` {
    private static func dropSlot(_ gateway: RunningGateway) async throws {
        let mine = "FROM pg_replication_slots WHERE database = current_database()"
        // The gateway takes it again at once, unless it is dropped at once.
        while try await gateway.count("SELECT count(*) \(mine)") != 0 {
            try? await gateway.sql(
                """
                DO $$ BEGIN
                    PERFORM pg_terminate_backend(active_pid, 5000) \(mine) AND active_pid IS NOT NULL;
                    PERFORM pg_drop_replication_slot(slot_name) \(mine);
                END $$
                """)
        }
    }

    @Test func `leaves no session without what was committed in between`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { gateway in
            let token = try await gateway.anonymousToken()
            let first = try await gateway.session(token: token)
            try await first.hello(["Order"])
            try await first.subscribe(1, [("Order", "store == 'north'")])
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('before', 'north', 1)")
            try await first.receive { $0.rows["Order"]?[.string("before")] != nil }
            // A slot begins after all transactions that are open when it is made.
            let writer = try await PostgresConnection.connect(gateway.conninfo)
            _ = try await writer.script("BEGIN; INSERT INTO orders (_id, store, size) VALUES ('open', 'north', 1)")
            try await Self.dropSlot(gateway)
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('between', 'north', 1)")
            _ = try await writer.script("COMMIT")
            await writer.close()
            #expect(try await first.failure().code == .resync)
            #expect(first.keys("Order") == ["before"])
            let gap = log.lines.first { $0.message.hasPrefix("Commits are missing in the log") }
            #expect(gap?.level == .warning && gap?.metadata["code"] == "\(ErrorCode.logGap.rawValue)", "\(log.lines.map(\.message))")
            let second = try await gateway.session(token: token)
            second.takeOver(first)
            try await second.hello(["Order"])
            try await second.subscribe(1, [("Order", "store == 'north'")])
            #expect(second.keys("Order") == ["before", "open", "between"])
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('after', 'north', 1)")
            try await second.receive { $0.rows["Order"]?[.string("after")] != nil }
            #expect(second.error == nil)
            second.close()
        }
    }
}
