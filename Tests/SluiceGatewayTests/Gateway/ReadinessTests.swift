import GatewayTestSupport
import Logging
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// What whoever balances load hears of a gateway that cannot do its work.
@Suite(.timeLimit(.minutes(5))) struct `A gateway's readiness` {
    private static let slot = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"

    /// Waits until the gateway says that a part cannot work, with its code; nil: that all can.
    private static func until(_ part: String?, _ gateway: RunningGateway) async throws {
        let said = try await found(every: .milliseconds(100)) {
            let answer = try await gateway.request("GET", "/ready")
            let problems = answer.json["problems"]?.array?.map { "\($0["part"]?.string ?? "") \($0["code"]?.int ?? 0)" } ?? []
            return part.map { problems.contains($0) } ?? problems.isEmpty ? answer : nil
        }
        let answer = try #require(said, "It does not say \(part ?? "that it is ready").")
        #expect(answer.status == (part == nil ? 200 : 503))
        #expect(answer.json["status"] == .string(part == nil ? "ready" : "not ready"))
        // Both ports say it, and the process lives.
        #expect(try await gateway.request("GET", "/ready", admin: true).status == answer.status)
        #expect(try await gateway.request("GET", "/health").status == 200)
        #expect(try await gateway.request("GET", "/health", admin: true).status == 200)
    }

    @Test func `ends when publishing fails, and comes back`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.until(nil, gateway)
            let slot = try #require(try await gateway.texts(Self.slot).first)
            // A slot of the name that nobody can publish from.
            while try await gateway.count("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '\(slot)' AND database IS NULL") == 0
            {
                try? await gateway.sql(
                    """
                    DO $$ BEGIN
                        PERFORM pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots
                            WHERE slot_name = '\(slot)' AND active_pid IS NOT NULL;
                        PERFORM pg_drop_replication_slot('\(slot)');
                        PERFORM pg_create_physical_replication_slot('\(slot)');
                    END $$
                    """)
            }
            do {
                try await Self.until("publisher 610", gateway)
            } catch {
                // The slot is none of the database's, so nobody else would remove it.
                try? await gateway.sql("SELECT pg_drop_replication_slot('\(slot)')")
                throw error
            }
            try await gateway.sql("SELECT pg_drop_replication_slot('\(slot)')")
            try await Self.until(nil, gateway)
        }
    }

    /// Nothing fails: somebody else reads the slot, and tells nobody.
    @Test func `ends when what is committed does not come by, and comes back with it`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { gateway in
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            try await Self.until(nil, gateway)
            let reader = try await Self.takeSlot(gateway)
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('late', 'north', 1)")
            try await Self.until("watermark 954", gateway)
            #expect(session.rows["Order"]?[.string("late")] == nil && session.error == nil)
            await reader.close()
            // The session goes on by itself.
            try await session.receive { $0.rows["Order"]?[.string("late")] != nil }
            try await Self.until(nil, gateway)
            #expect(session.error == nil && session.bootstraps == 1)
            session.close()
        }
        let lines = log.lines.filter { $0.message.contains("through the log") }
        #expect(lines.map(\.level) == [.error, .notice], "\(lines)")
    }

    /// Reads the slot in the gateway's place, and confirms nothing.
    private static func takeSlot(_ gateway: RunningGateway) async throws -> ReplicationStream {
        let slot = try #require(try await gateway.texts(Self.slot).first)
        let configuration = ReplicationConfiguration(
            conninfo: gateway.conninfo, slot: slot, publications: [slot], schema: Schema([]), tables: [])
        let stream = try await found { () async throws -> ReplicationStream? in
            try await gateway.sql(
                "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = '\(slot)' AND active_pid IS NOT NULL"
            )
            do {
                return try await ReplicationStream.open(configuration)
            } catch let failure as PostgresError where failure.code == .slotBusy {
                // The gateway was faster.
                return nil
            }
        }
        return try #require(stream, "the gateway is faster each time")
    }
}
