import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluicePostgres
import Testing

@Suite struct `A gateway's first start` {
    /// A slot begins only when every transaction is over that was there before it.
    @Test func `lets nobody in before its replication slot is there`() async throws {
        try await RunningGateway.deploy { deployment in
            let writer = try await PostgresConnection.connect(deployment.conninfo)
            _ = try await writer.script("BEGIN; INSERT INTO orders (_id, store, size) VALUES ('slow', 'north', 1)")
            async let end: Void = Self.commit(writer)
            try await deployment.run(ShopApp.files) { gateway in
                let slots = try await gateway.count(
                    "SELECT count(*) FROM pg_replication_slots WHERE database = current_database() AND confirmed_flush_lsn IS NOT NULL")
                let orders = try await gateway.count("SELECT count(*) FROM orders")
                #expect(slots == 1 && orders == 1)
            }
            try await end
            await writer.close()
        }
    }

    @Test func `says what in the app directory has no effect`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(files: ["functions/config.json": "[]"], logger: Logger(label: "test") { _ in log }) { _ in }
        let said = log.lines.filter { $0.message == "A setting in the app directory has no effect." }
        #expect(said.contains { $0.level == .warning && $0.metadata["note"] == "functions/ has no effect here." }, "\(said)")
    }

    /// Later than a gateway takes to start.
    private static func commit(_ connection: PostgresConnection) async throws {
        try await Task.sleep(for: .seconds(3))
        _ = try await connection.script("COMMIT")
    }
}
