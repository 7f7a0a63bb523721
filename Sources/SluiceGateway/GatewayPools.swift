import SluicePostgres

/// The gateway's connections to PostgreSQL, apart by what they may wait for: nobody who only asks and answers has to wait behind
/// somebody who waits for others.
struct GatewayPools: Sendable {
    /// For everything that is over soon.
    let main: PostgresPool
    /// Lends connections to writes that plugins judge, for as long as those and what they want kept take.
    let judged: PostgresPool
    /// For what plugins ask while such a write waits for them.
    let questions: PostgresPool
    /// Waits for the disk on behalf of all uploads.
    let disk: PostgresPool
    /// Lends connections to large views, however slowly they are read.
    let streams: PostgresPool

    /// Opens nothing yet.
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
