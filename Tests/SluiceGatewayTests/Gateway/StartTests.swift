import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluicePostgres
import TestSupport
import Testing

@Suite struct `A gateway's first start` {
    /// A slot begins only when every transaction is over that was there before it.
    @Test func `lets nobody in before its replication slot is there`() async throws {
        try await RunningGateway.deploy { deployment in
            let writer = try await PostgresConnection.connect(deployment.conninfo)
            _ = try await writer.script("CREATE TABLE elsewhere (a int); BEGIN; INSERT INTO elsewhere VALUES (1)")
            async let end: Void = Self.commit(writer, deployment.conninfo)
            try await deployment.run(ShopApp.files) { gateway in
                let slots = try await gateway.count(
                    "SELECT count(*) FROM pg_replication_slots WHERE database = current_database() AND confirmed_flush_lsn IS NOT NULL")
                let rows = try await gateway.count("SELECT count(*) FROM elsewhere")
                #expect(slots == 1 && rows == 1)
            }
            try await end
            await writer.close()
        }
    }

    @Test func `says what in the app directory has no effect`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(files: ["graphql/config.json": "{}"], logger: Logger(label: "test") { _ in log }) { _ in }
        let said = log.lines.filter { $0.message == "A setting in the app directory has no effect." }
        #expect(said.contains { $0.level == .warning && $0.metadata["note"] == "graphql/ has no effect here." }, "\(said)")
    }

    /// Commits once the slot waits for the transaction, and a gateway that does not wait would have started.
    private static func commit(_ writer: PostgresConnection, _ conninfo: String) async throws {
        let watch = try await PostgresConnection.connect(conninfo)
        let waiting = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database() AND confirmed_flush_lsn IS NULL"
        let isWaiting = try await eventually { try await watch.query(waiting).int(0, 0) == 1 }
        await watch.close()
        // That nobody is let in meanwhile cannot be awaited.
        try await Task.sleep(for: .milliseconds(1_500))
        _ = try await writer.script("COMMIT")
        try #require(isWaiting)
    }
}
