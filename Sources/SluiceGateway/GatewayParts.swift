import Logging
import ServiceLifecycle
import SluiceCore
import SluiceKafka
import SluicePipeline
import SluicePluginHost
import SluicePostgres

/// What a gateway consists of, opened in order and closed in the opposite one.
struct GatewayParts: Sendable {
    let pool: PostgresPool
    let marker: PostgresMarker
    let kafka: KafkaLog?
    let chain: PluginChain
    let schema: GatewaySchema
    let sessionServices: SessionServices
    let access: GatewayAccess
    let readiness: Readiness
    let metrics: Metrics
    let quarantine: QuarantineKeeper
    let services: [any Service]

    /// - Throws: what is missing or unfit; nothing is left open then.
    static func open(_ configuration: GatewayConfiguration, logger: Logger, environment: any Environment) async throws -> GatewayParts {
        let pool = PostgresPool(configuration.postgres, size: 8)
        var kafka: KafkaLog?
        var chain: PluginChain?
        do {
            let names = try await PostgresPreparation.prepare(pool, app: configuration.app.appID)
            kafka = try configuration.kafka.map {
                try KafkaLog(
                    KafkaConfiguration(bootstrapServers: $0, clientID: "sluice-\(configuration.app.appID)"), logger: logger)
            }
            let plugins = PluginChain(plugins: try specs(configuration), hostExecutable: try InstalledFiles.pluginHost(), logger: logger)
            chain = plugins
            return try await join(
                configuration, Outside(pool: pool, names: names, kafka: kafka, chain: plugins), logger: logger, environment: environment)
        } catch {
            await chain?.stop()
            await kafka?.close()
            await pool.close()
            throw error
        }
    }

    /// What the gateway talks to.
    private struct Outside {
        let pool: PostgresPool
        let names: ReplicationNames
        let kafka: KafkaLog?
        let chain: PluginChain
    }

    private static func join(
        _ configuration: GatewayConfiguration, _ outside: Outside, logger: Logger, environment: any Environment
    ) async throws -> GatewayParts {
        let app = configuration.app
        let topics = Topics(app: app.appID)
        let (pool, names, kafka, chain) = (outside.pool, outside.names, outside.kafka, outside.chain)
        let log: any MessageLog = kafka ?? EmbeddedLog(environment: environment)
        let tables = GatewayTables(app: app, pool: pool, names: names)
        let applied = AppliedSchema(store: AppSchemaStore(pool: pool))
        if !configuration.isDevelopment { try await applied.requireNoBreak(app) }
        let schema = try await GatewaySchema.open(
            app.schema, fields: app.queryableFields, isDevelopment: configuration.isDevelopment, tables: tables, log: log, topics: topics)
        if !configuration.isDevelopment { try await applied.record(app) }
        try await PostgresFailure.translating { try await PostgresCapture.ensureSlot(names.slot, pool, logger) }
        try await chain.start()
        try await chain.configure(
            app: AppDescription.json(
                appID: app.appID, directory: app.files, schema: schema.current().schema, queryableFields: schema.current().fields))
        let rules = PluginRules(chain: chain, authority: schema)
        let access = try await GatewayAccess.open(pool: pool, app: app, environment: environment)
        let metrics = Metrics()
        let readiness = Readiness()
        let quarantine = QuarantineKeeper(store: QuarantineStore(pool: pool), tables: tables, metrics: metrics, logger: logger)
        let frames = SocketFrames()
        let marker = PostgresMarker(configuration.postgres)
        let fanout = Fanout(
            authority: schema, frames: frames, environment: environment, logger: logger,
            marks: MarkWriter(marker, environment: environment, logger: logger))
        let feed = Feed(log: log, topics: topics, fanout: fanout, logger: logger)
        let store = PostgresWrites(pool: pool, tables: tables)
        let ingestStore = PostgresIngest(pool: pool, tables: tables, conninfo: configuration.postgres)
        let watch = IngestWatch(metrics: metrics)
        let intake: any IngestIntake =
            kafka == nil
            ? DirectIntake(store: ingestStore, rules: rules, authority: schema, report: watch.report)
            : LogIntake(log: log, topics: topics, partitions: { try await schema.ingestPartitions(of: $0) })
        let services = SessionServices(
            app: app.appID, authenticator: access.authenticator, clients: PostgresClients(pool: pool), authority: schema, rules: rules,
            snapshots: PostgresSnapshots(pool: pool, tables: tables, unfit: quarantine.met),
            committer: Committer(store: store, rules: rules, environment: environment),
            ingest: intake, feed: feed,
            fanout: fanout, layout: schema, frames: frames, environment: environment, logger: logger,
            isRecoveryAllowed: app.isRecoveryAllowed)
        let schemaWatch = SchemaWatch(applied: applied, schema: schema, chain: chain, app: app, environment: environment, logger: logger)
        let publisher = Publisher(
            source: PostgresCapture(
                conninfo: configuration.postgres, names: names, tables: tables, pool: pool, logger: logger),
            log: log, authority: schema, layouts: schema, topics: topics, environment: environment, logger: logger,
            catchUp: schemaWatch.catchUp,
            report: PublisherWatch(schema: schema, quarantine: quarantine, readiness: readiness, metrics: metrics, logger: logger).report)
        var background: [any Service] = [
            BackgroundService("feed") { try await feed.run() },
            BackgroundService("publisher") { try await publisher.run() },
            BackgroundService("quarantine") { try await quarantine.run() },
        ]
        if !configuration.isDevelopment { background.append(BackgroundService("schema") { try await schemaWatch.run() }) }
        if kafka != nil {
            background.append(
                IngestService(
                    schema: schema, topics: topics, log: log, store: ingestStore, rules: rules, environment: environment, watch: watch,
                    logger: logger))
        }
        return GatewayParts(
            pool: pool, marker: marker, kafka: kafka, chain: chain, schema: schema, sessionServices: services, access: access,
            readiness: readiness, metrics: metrics, quarantine: quarantine, services: background)
    }

    /// Ends what is left when the services have ended.
    func close() async {
        await chain.stop()
        await kafka?.close()
        await marker.close()
        await pool.close()
    }

    /// The plugins named, or the roles of the app directory when it has any.
    private static func specs(_ configuration: GatewayConfiguration) throws(SluiceError) -> [PluginSpec] {
        let mode: PluginSpec.Mode = configuration.plugins.inProcess ? .inProcess : .process
        var files = configuration.plugins.files
        let hasRules = configuration.app.files.keys.contains { $0.hasSuffix("rules.json") || $0.hasSuffix("default_rule.json") }
        if hasRules, !files.contains(where: { $0.contains("AppServicesRules") }) {
            guard let rules = InstalledFiles.plugin("AppServicesRules") else {
                throw SluiceError(.pluginMissing, "The app directory has roles, and the plugin AppServicesRules is not installed.")
            }
            files.insert(rules, at: 0)
        }
        return files.map { PluginSpec(path: $0, mode: mode) }
    }
}
