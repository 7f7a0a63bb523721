import SluicePostgres

/// The gateway's PostgreSQL connections, in pools by their waiting time. A short query never waits behind a connection that is lent for
/// long.
struct GatewayPools: Sendable {
    /// Eight connections for short statements.
    let main: PostgresPool
    /// Eight connections for writes that plugins judge. Each is lent until the plugins have answered and their records are stored.
    let judged: PostgresPool
    /// Two connections for queries by plugins while a judged write waits for them.
    let questions: PostgresPool
    /// One connection that waits for the WAL flush on behalf of all uploads.
    let disk: PostgresPool
    /// Eight connections for large views. Each is lent for as long as its client reads.
    let streams: PostgresPool

    /// Creates the pools without opening a connection.
    init(_ conninfo: String) {
        main = PostgresPool(conninfo, size: 8)
        judged = PostgresPool(conninfo, name: "judged writes", size: 8)
        questions = PostgresPool(conninfo, name: "questions", size: 2)
        disk = PostgresPool(conninfo, name: "disk", size: 1)
        streams = PostgresPool(conninfo, name: "snapshots", size: 8)
    }

    func close() async {
        for pool in [disk, streams, judged, questions, main] { await pool.close() }
    }
}
