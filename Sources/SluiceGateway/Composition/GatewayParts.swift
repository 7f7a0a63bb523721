import Logging
import ServiceLifecycle
import SluiceCore
import SluiceKafka
import SluicePipeline
import SluicePostgres

/// The parts of a gateway, opened in order and closed in the opposite one.
struct GatewayParts: Sendable {
    /// The parts that sessions and the admin interface share.
    struct Core: Sendable {
        let schema: GatewaySchema
        let access: GatewayAccess
        let readiness: Readiness
        let watch: SessionWatch
        let quarantine: QuarantineKeeper
        let marker: PostgresMarker
    }

    /// The stores behind the admin interface and HTTP ingest.
    struct Stores: Sendable {
        let letters: DeadLetterReplay
        let idempotency: IdempotencyKeys
        let audit: AuditLog
    }

    private let outside: GatewayOutside
    private let core: Core
    private let stores: Stores
    let sessionServices: SessionServices
    let services: [any Service]

    init(_ outside: GatewayOutside, _ core: Core, _ stores: Stores, sessionServices: SessionServices, services: [any Service]) {
        self.outside = outside
        self.core = core
        self.stores = stores
        self.sessionServices = sessionServices
        self.services = services
    }

    var pools: GatewayPools { outside.pools }
    var generations: RuleGenerations { outside.generations }
    var plugins: RulePlugins { outside.plugins }
    var telemetry: Telemetry { outside.telemetry }
    var metrics: Metrics { outside.telemetry.metrics }
    /// The name of the replication slot.
    var slot: String { outside.names.slot }
    var schema: GatewaySchema { core.schema }
    var access: GatewayAccess { core.access }
    var readiness: Readiness { core.readiness }
    var watch: SessionWatch { core.watch }
    var quarantine: QuarantineKeeper { core.quarantine }
    var letters: DeadLetterReplay { stores.letters }
    var idempotency: IdempotencyKeys { stores.idempotency }
    var audit: AuditLog { stores.audit }

    /// Opens all parts.
    ///
    /// - Throws: The first missing or unfit part. The parts opened before it are closed.
    static func open(
        _ configuration: GatewayConfiguration, _ telemetry: Telemetry, logger: Logger, environment: any Environment
    ) async throws -> GatewayParts {
        try configuration.requireAdminToken()
        let outside = try await GatewayOutside.open(configuration, telemetry, logger: logger, environment: environment)
        do {
            return try await GatewayBuilder(configuration, outside, logger: logger, environment: environment).build()
        } catch {
            await outside.close()
            throw error
        }
    }

    /// Closes the parts. The services must have ended before.
    func close() async {
        await outside.generations.stop()
        await sessionServices.resume.close()
        await outside.kafka?.close()
        await core.marker.close()
        await outside.pools.close()
    }
}

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
