import SluicePorts

/// A WAL heartbeat: a logical message without content. The end of its transaction arrives through the replication slot at once.
package enum WALHeartbeat {
    static let prefix = "sluice-mark"

    /// Writes a heartbeat.
    ///
    /// It is transactional, because only a commit makes the server flush its WAL at once. Otherwise the message waits for the WAL
    /// writer, up to 200 ms.
    package static func write(_ pool: PostgresPool) async throws {
        do {
            try await pool.perform { session in
                // Constant because: the prefix is defined in this file.
                _ = try session.query("SELECT pg_logical_emit_message(true, '\(prefix)', '')", cached: true)
            }
        } catch {
            throw PostgresError.forPort(error)
        }
    }
}

/// Writes WAL heartbeats over a connection of its own. Snapshots hold the connections of the main pool while they wait for the position
/// that a heartbeat advances.
package struct PostgresMarker: WALHeartbeatSender {
    private let pool: PostgresPool

    package init(_ conninfo: String) { pool = PostgresPool(conninfo, name: "marks", size: 1) }

    package func mark() async throws { try await WALHeartbeat.write(pool) }

    package func close() async { await pool.close() }
}
