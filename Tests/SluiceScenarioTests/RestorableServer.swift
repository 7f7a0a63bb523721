import Foundation
import GatewayTestSupport
import SluiceDevServer
import SluicePostgres
import Testing

/// A PostgreSQL of the test's own whose data folder is copied, and put back later: the same server, on the same timeline, of an
/// earlier time.
@MainActor
final class RestorableServer {
    private let folder = "/tmp/sluice-restored-\(UInt64.random(in: .min ... .max))"
    private var server: PrivatePostgres?
    /// Of the gateways, so that devices find the next one.
    private var port = 0

    static func with(_ body: @MainActor (RestorableServer) async throws -> Void) async throws {
        let server = RestorableServer()
        defer { try? FileManager.default.removeItem(atPath: server.folder) }
        do {
            try await server.start()
            try await server.sql(ShopApp.tables)
            try await body(server)
        } catch {
            await server.server?.stop()
            throw error
        }
        await server.server?.stop()
    }

    private func start() async throws { server = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off"]) }

    /// Stops the server, copies its data, and starts it.
    func backUp() async throws { try await copy("data", to: "backup") }

    /// Stops the server, puts the copy in the place of its data, and starts it.
    func restore() async throws { try await copy("backup", to: "data") }

    private func copy(_ from: String, to place: String) async throws {
        await server?.stop()
        try? FileManager.default.removeItem(atPath: "\(folder)/\(place)")
        let copy = Process()
        copy.executableURL = URL(fileURLWithPath: "/bin/cp")
        copy.arguments = ["-a", "\(folder)/\(from)", "\(folder)/\(place)"]
        try copy.run()
        copy.waitUntilExit()
        try #require(copy.terminationStatus == 0)
        try await start()
    }

    /// Runs a gateway for as long as the body runs.
    func run(
        _ files: [String: String] = ShopApp.files, kafka: String? = nil, _ body: @escaping @MainActor (RunningGateway) async throws -> Void
    ) async throws {
        let deployment = RunningGateway.Deployment(conninfo: try #require(server).conninfo)
        port = try await deployment.run(files, port: port, kafka: kafka) { @MainActor gateway in
            try await body(gateway)
            return gateway.port
        }
    }

    func sql(_ text: String) async throws {
        let connection = try await PostgresConnection.connect(try #require(server).conninfo)
        _ = try await connection.script(text)
        await connection.close()
    }

    /// How far the log and the numbers of transactions have come.
    struct Place {
        var lsn: Int64
        var transaction: Int64
    }

    func place() async throws -> Place {
        let connection = try await PostgresConnection.connect(try #require(server).conninfo)
        let result = try await connection.query(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        await connection.close()
        return Place(lsn: try #require(result.int(0, 0)), transaction: try #require(result.int(0, 1)))
    }

    /// Has others write until the log and the numbers of transactions are beyond a place of the time that was lost.
    func write(beyond place: Place) async throws {
        var here = try await self.place()
        while here.lsn <= place.lsn || here.transaction <= place.transaction {
            try await sql(
                """
                DO $$ BEGIN FOR i IN 1..500 LOOP
                    INSERT INTO tags (_id, title) VALUES ('t', repeat('t', 2000)) ON CONFLICT (_id) DO UPDATE SET title = repeat('u', 2000);
                    COMMIT;
                END LOOP; END $$
                """)
            here = try await self.place()
        }
    }
}
