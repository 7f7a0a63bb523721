import SluicePorts
import SluicePostgres

/// Writes WAL heartbeats over a connection of its own. Snapshots hold the connections of the main pool while they wait for the position
/// that a heartbeat advances.
struct PostgresMarker: WALHeartbeatSender {
    private let pool: PostgresPool

    init(_ conninfo: String) { pool = PostgresPool(conninfo, name: "marks", size: 1) }

    func mark() async throws { try await WALHeartbeat.write(pool) }

    func close() async { await pool.close() }
}
