import Foundation
import SluiceCore
import SluiceDevServer
import SluicePorts
import SluicePostgres
import Synchronization
import TestSupport
import Testing

/// A transaction is in the log before it is visible; here it waits in between for a standby that is not there.
@Suite struct `A snapshot beside a commit that waits for a standby` {
    @Test func `tells when the commit was`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-standby-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off"])
        let pool = PostgresPool(server.conninfo, size: 2)
        let writer = try await PostgresConnection.connect(server.conninfo)
        let other = try await PostgresConnection.connect(server.administration)
        try await CompanionSchema.create(writer)
        let schema = Schema([ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int)])])
        let shape = try TableShape(schema.types[0], in: schema)
        _ = try await writer.script(shape.definition)
        _ = try await other.script("SET synchronous_commit = local")
        _ = try await other.script("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        _ = try await other.script("SELECT pg_reload_conf()")
        // Its backend takes the setting when it comes to it.
        try await Self.wait(writer, "SELECT (current_setting('synchronous_standby_names') = 'nobody')::int", is: 1)
        let inserts = Inserts()
        async let commit: Void = inserts.run(writer)
        // The commit is in the log when its backend waits.
        try await Self.wait(other, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", is: 1)
        inserts.isWaiting.store(true, ordering: .relaxed)
        #expect(try await other.query("SELECT count(*) FROM \"Item\"").int(0, 0) == inserts.done.load(ordering: .relaxed))
        let store = PostgresSnapshotStore(pool: pool)
        func read() async throws -> SnapshotStart { try #require(try await store.read(choose: { _ in [] }, rows: { _, _, _ in })) }
        let start = try await read()
        let missed = try #require(start.missed)
        #expect(missed <= start.begun && missed > start.begun - 60_000_000)
        // The row of the waiting commit would be taken for one that is gone.
        let keys = (0...inserts.done.load(ordering: .relaxed)).map { Value.int($0) }
        let (rows, snapshot) = try await store.stored(shape, keys: keys)
        #expect(rows.count == keys.count - 1 && snapshot.missed == missed)
        _ = try await other.script("ALTER SYSTEM RESET synchronous_standby_names")
        _ = try await other.script("SELECT pg_reload_conf()")
        try await commit
        #expect(try await read().missed == nil)
        let (all, last) = try await store.stored(shape, keys: keys)
        #expect(all.count == keys.count && last.missed == nil)
        await pool.close()
        await server.stop()
    }

    /// Rows inserted one by one until a commit waits. The first need not: what a commit goes by is set by another process of
    /// the server, when that comes to the new setting.
    private final class Inserts: Sendable {
        let isWaiting = Atomic(false)
        let done = Atomic<Int64>(0)

        func run(_ connection: PostgresConnection) async throws {
            while !isWaiting.load(ordering: .relaxed) {
                _ = try await connection.script("INSERT INTO \"Item\" SELECT count(*) FROM \"Item\"")
                done.add(1, ordering: .relaxed)
            }
        }
    }

    /// Another process's work has no event to wait for.
    private static func wait(
        _ connection: PostgresConnection, _ query: String, is number: Int64
    ) async throws {
        try #require(try await eventually { try await connection.query(query).int(0, 0) == number }, "\(query)")
    }
}
