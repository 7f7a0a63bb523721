import SluicePorts

/// Writes WAL heartbeats over a connection of its own. Snapshots hold the connections of the main pool while they wait for the position
/// that a heartbeat advances.
package struct PostgresMarker: WALHeartbeatSender {
    private let pool: PostgresPool

    package init(_ conninfo: String) { pool = PostgresPool(conninfo, name: "marks", size: 1) }

    package func mark() async throws { try await WALHeartbeat.write(pool) }

    package func close() async { await pool.close() }
}
