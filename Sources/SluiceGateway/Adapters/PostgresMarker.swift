import SluicePipeline
import SluicePostgres

/// Marks in PostgreSQL's write-ahead log, over a connection of their own: snapshots hold those of the gateway's pool while they
/// wait for the position that a mark moves.
struct PostgresMarker: LogMarker {
    private let pool: PostgresPool

    init(_ conninfo: String) { pool = PostgresPool(conninfo, name: "marks", size: 1) }

    func mark() async throws { try await LogMark.write(pool) }

    func close() async { await pool.close() }
}
