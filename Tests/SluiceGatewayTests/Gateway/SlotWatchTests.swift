import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceDevServer
import SluiceGateway
import SluicePostgres
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The slot's budget` {
    @Test func `is warned of when half of it is used, at each further tenth, and once when that is over`() {
        var alarm = SlotAlarm()
        let lines: [(Double, SlotAlarm.Line?)] = [
            (0, nil), (0.49, nil), (0.5, .warn), (0.55, nil), (0.59, nil), (0.6, .warn), (0.55, nil), (0.6, nil), (0.69, nil),
            (0.95, .warn), (0.9, nil), (1, .warn), (1, nil),
            // About the half there is nothing new; well below it the trouble is over, and may come again.
            (0.49, nil), (0.51, nil), (0.4, nil), (0.39, .over), (0.1, nil), (0.49, nil), (0.7, .warn), (0.3, .over), (0, nil),
        ]
        for (index, (ratio, line)) in lines.enumerated() { #expect(alarm.take(ratio) == line, "\(index): \(ratio)") }
    }

    /// A server of its own, whose log nobody reads.
    @Test func `is warned of in the log`() async throws {
        let folder = "/tmp/sluice-slot-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off", "max_slot_wal_keep_size": "160MB"])
        let (log, pool) = (LinesOfLog(), PostgresPool(server.conninfo, size: 1))
        do {
            try await Self.fill(server.administration, SlotWatch(pool: pool, slot: "app", logger: Logger(label: "test") { _ in log }), log)
        } catch {
            await pool.close()
            await server.stop()
            throw error
        }
        await pool.close()
        await server.stop()
    }

    private static func fill(_ conninfo: String, _ watch: SlotWatch, _ log: LinesOfLog) async throws {
        let connection = try await PostgresConnection.connect(conninfo)
        var alarm = SlotAlarm()
        // No slot is the publisher's to tell.
        await watch.look(&alarm)
        _ = try await ReplicationSlot.ensure(connection, name: "app")
        await watch.look(&alarm)
        #expect(log.lines.isEmpty)
        // A segment has 16 MiB.
        func write(segments: Int) async throws {
            for _ in 0..<segments { _ = try await connection.script("SELECT txid_current(); SELECT pg_switch_wal()") }
        }
        try await write(segments: 3)
        await watch.look(&alarm)
        #expect(log.lines.isEmpty)
        try await write(segments: 4)
        await watch.look(&alarm)
        await watch.look(&alarm)
        #expect(log.lines.map(\.level) == [.warning])
        let percent = try #require(log.lines.first?.metadata["percent"].flatMap { Int("\($0)") })
        #expect(
            (50..<100).contains(percent) && log.lines.first?.metadata["slot"] == "app" && log.lines.first?.metadata["active"] == "false")
        try await ReplicationSlot.drop(connection, name: "app")
        _ = try await ReplicationSlot.ensure(connection, name: "app")
        await watch.look(&alarm)
        #expect(log.lines.map(\.level) == [.warning, .notice])
        await connection.close()
    }
}
