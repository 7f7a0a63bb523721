import Logging
import ServiceLifecycle
import SluiceCore
import SluiceEmbeddedLog
import SluiceKafka
import SluicePipeline
import SluicePluginHost
import SluicePorts
import SluicePostgres

/// The parts of a gateway, opened in order and closed in the opposite one.
struct GatewayParts: Sendable {
    let pools: GatewayPools
    let marker: PostgresMarker
    let kafka: KafkaLog?
    let generations: RuleGenerations
    let plugins: RulePlugins
    let schema: GatewaySchema
    let sessionServices: SessionServices
    let access: GatewayAccess
    let readiness: Readiness
    let metrics: Metrics
    let watch: SessionWatch
    /// The name of the replication slot.
    let slot: String
    let quarantine: QuarantineKeeper
    let letters: DeadLetterReplay
    let idempotency: IdempotencyKeys
    let audit: AuditLog
    let services: [any Service]

    /// Opens all parts.
    ///
    /// - Throws: The first missing or unfit part. The parts opened before it are closed.
    static func open(_ configuration: GatewayConfiguration, logger: Logger, environment: any Environment) async throws -> GatewayParts {
        try configuration.requireAdminToken()
        let pools = GatewayPools(configuration.postgres)
        var kafka: KafkaLog?
        var generations: RuleGenerations?
        do {
            // Before any wait, so that a wrong Kafka setting fails at once.
            kafka = try configuration.kafka.map {
                try KafkaLog(
                    KafkaConfiguration(
                        bootstrapServers: $0, clientID: "sluice-\(configuration.app.appID)", settings: configuration.kafkaSettings),
                    logger: logger)
            }
            let names = try await PostgresPreparation.prepare(pools.main, app: configuration.app.appID)
            let metrics = Metrics()
            let records = PluginRecords(
                log: kafka, app: configuration.app.appID, isDevelopment: configuration.isDevelopment, logger: logger)
            let services = PluginServices(users: UserStore(pool: pools.questions))
            let plugins = RulePlugins(configuration, records: records, services: services, metrics: metrics, logger: logger)
            let customData = CustomDataTable(pool: pools.questions)
            let rules = RuleGenerations(try plugins.chain(configuration.app), app: configuration.app, environment: environment) { app in
                try await PostgresFailure.translating { try await customData.columns(of: app) }
            }
            generations = rules
            return try await join(
                configuration,
                Outside(
                    pools: pools, names: names, kafka: kafka, generations: rules, plugins: plugins, services: services, metrics: metrics),
                logger: logger,
                environment: environment)
        } catch {
            await generations?.stop()
            await kafka?.close()
            await pools.close()
            throw error
        }
    }

    /// The systems outside the pipeline: databases, brokers and plugins.
    private struct Outside {
        let pools: GatewayPools
        let names: ReplicationNames
        let kafka: KafkaLog?
        let generations: RuleGenerations
        let plugins: RulePlugins
        let services: PluginServices
        let metrics: Metrics
    }

    private static func join(
        _ configuration: GatewayConfiguration, _ outside: Outside, logger: Logger, environment: any Environment
    ) async throws -> GatewayParts {
        let app = configuration.app
        let topics = Topics(app: app.appID)
        let (pools, names, kafka, generations) = (outside.pools, outside.names, outside.kafka, outside.generations)
        let pool = pools.main
        let log: any MessageLog = kafka ?? EmbeddedLog(environment: environment)
        let tables = GatewayTables(app: app, pool: pool, names: names, logger: logger)
        let applied = AppliedSchema(store: AppSchemaStore(pool: pool))
        // Nothing is recorded or published of a schema that breaks the one in use; the first throw ends the start.
        if !configuration.isDevelopment { try await applied.requireNoBreak(app) }
        let schema = try await GatewaySchema.open(
            app.schema, fields: app.queryableFields, isDevelopment: configuration.isDevelopment, tables: tables, log: log, topics: topics,
            tell: generations.configure)
        // Recorded only once the tables fit, as other gateways adopt the recorded schema.
        if !configuration.isDevelopment { try await applied.record(app) }
        try await PostgresFailure.translating { try await PostgresCapture.ensureSlot(names.slot, pool, logger) }
        // Plugins may parse predicates while they are configured.
        outside.services.connect(schema)
        try await generations.start(schema.current())
        let rules = PluginRules(generations: generations, authority: schema)
        let access = try await GatewayAccess.open(
            pool: pool, app: app, isDevelopment: configuration.isDevelopment, passwordCost: configuration.passwordCost,
            environment: environment, logger: logger)
        let metrics = outside.metrics
        metrics.show(generations.missing)
        let readiness = Readiness()
        let quarantine = QuarantineKeeper(store: QuarantineStore(pool: pool), tables: tables, metrics: metrics, logger: logger)
        let frames = SocketFrames()
        let sessionWatch = SessionWatch(metrics: metrics, environment: environment)
        let marker = PostgresMarker(configuration.postgres)
        let fanout = Fanout(
            authority: schema, frames: frames, environment: environment, logger: logger,
            marks: WALHeartbeatWriter(marker, environment: environment, logger: logger), observer: sessionWatch)
        let feed = Feed(log: log, topics: topics, fanout: fanout, environment: environment, logger: logger)
        let resume = LogResume(log: log, feed: feed, environment: environment, logger: logger)
        let shapes: PostgresRowStore.Tables = { try tables.shape(of: $0) }
        let store = PostgresWrites(
            rows: PostgresRowStore(pool: pool, waiting: pools.judged, log: DurableLog(pool: pools.disk), tables: shapes),
            foreignKeys: { tables.foreignKeys })
        let ingestStore = PostgresIngest(pool: pool, conninfo: configuration.postgres, tables: shapes)
        let watch = IngestWatch(metrics: metrics, logger: logger)
        // External producers start when the gateway is ready. Brokers would create missing topics with a partition count of their own.
        if kafka != nil {
            for type in schema.current().schema.types where type.kind == .asymmetric {
                _ = try await schema.ingestPartitions(of: type.name)
            }
        }
        let refusals = IngestRejections(store: ingestStore, observer: watch, logger: logger)
        let intake: any IngestIntake =
            kafka == nil
            ? DirectIntake(store: ingestStore, rules: rules, authority: schema, refusals: refusals, observer: watch)
            : LogIntake(log: log, topics: topics, refusals: refusals, partitions: { try await schema.ingestPartitions(of: $0) })
        let services = SessionServices(
            app: app.appID, authenticator: access.authenticator, clients: PostgresClientRegistry(pool: pool), authority: schema,
            rules: rules,
            snapshots: PostgresSnapshots(pool: pool, streams: pools.streams, tables: shapes, unfit: quarantine.met),
            committer: Committer(
                store: store, rules: rules, environment: environment, bound: { [bounds = tables.bounds] in bounds[$0].current }),
            ingest: TimedIntake(intake, metrics: metrics, environment: environment), feed: feed,
            fanout: fanout, resume: resume, layout: schema, frames: frames, environment: environment, logger: logger,
            isRecoveryAllowed: app.isRecoveryAllowed, observer: sessionWatch, sealer: access.sealer)
        let schemaWatch = SchemaWatch(applied: applied, schema: schema, environment: environment, logger: logger)
        let recordBounds = RecordBoundWatch(
            log: log, topics: topics, schema: schema, bounds: tables.bounds, readiness: readiness, environment: environment, logger: logger)
        // The first clients need the topics' bounds, so the first look is not left to the service.
        await recordBounds.look()
        let publisherWatch = PublisherWatch(
            schema: schema, quarantine: quarantine, readiness: readiness, metrics: metrics, logger: logger, bounds: recordBounds)
        let publisher = Publisher(
            source: PostgresCapture(
                conninfo: configuration.postgres, names: names,
                tables: { TableCatalog(schema: $0, places: tables.places).tables }, bounds: tables.bounds, pool: pool, logger: logger),
            deletions: PostgresForeignDeletions(pool: pool), log: log, authority: schema, layouts: schema, topics: topics,
            environment: environment, logger: logger,
            catchUp: schemaWatch.catchUp,
            report: publisherWatch.report)
        var background: [any Service] = [
            BackgroundService("feed") { try await feed.run() },
            BackgroundService("publisher") { try await publisher.run() },
            BackgroundService("watermark") {
                try await WatermarkWatch(
                    fanout: fanout, readiness: readiness, environment: environment, logger: logger,
                    pieces: { publisherWatch.pieces.count }, end: { try await services.snapshots.currentLSN() }, cause: { kafka?.trouble }
                ).run()
            },
            BackgroundService("slot") {
                try await SlotWatch(pool: pool, slot: names.slot, logger: logger).run(environment)
            },
            BackgroundService("record bounds") { try await recordBounds.run() },
            BackgroundService("quarantine") { try await quarantine.run() },
            BackgroundService("tables") { try await TableWatch(tables: tables, environment: environment, logger: logger).run() },
            BackgroundService("partitions") {
                try await PartitionKeeper(store: TimePartitionStore(pool: pool), environment: environment, logger: logger).run()
            },
        ]
        let idempotency = IdempotencyKeys(store: IngestRequestStore(pool: pool), environment: environment, logger: logger)
        background.append(BackgroundService("idempotency") { try await idempotency.prune() })
        if !configuration.isDevelopment { background.append(BackgroundService("schema") { try await schemaWatch.run() }) }
        let letters = DeadLetterStore(pool: pool)
        background.append(
            BackgroundService("housekeeping") {
                try await Housekeeping(
                    clients: ClientStore(pool: pool), offlineDays: app.maximumOfflineDays, letters: letters, hasTopic: kafka != nil,
                    writes: WriteRejectionStore(pool: pool), audit: AuditLog(pool: pool),
                    environment: environment, logger: logger
                ).run()
            })
        if let kafka {
            let relay = DeadLetterRelay(
                letters: letters, log: kafka, topic: topics.deadLetters, longestAppend: kafka.longestAppend, environment: environment,
                logger: logger
            ) { try await !ingestStore.claim(topic: topics.deadLetters, partitions: 1).isEmpty }
            background.append(BackgroundService("dead letters") { try await relay.run() })
            background.append(
                IngestService(
                    schema: schema, topics: topics, log: log, store: ingestStore, rules: rules, environment: environment, watch: watch,
                    logger: logger))
        }
        return GatewayParts(
            pools: pools, marker: marker, kafka: kafka, generations: generations, plugins: outside.plugins,
            schema: schema,
            sessionServices: services,
            access: access,
            readiness: readiness, metrics: metrics, watch: sessionWatch, slot: names.slot, quarantine: quarantine,
            letters: DeadLetterReplay(letters: letters, intake: intake, authority: schema, hasTopic: kafka != nil),
            idempotency: idempotency, audit: AuditLog(pool: pool),
            services: background)
    }

    /// Closes the parts. The services must have ended before.
    func close() async {
        await generations.stop()
        await sessionServices.resume.close()
        await kafka?.close()
        await marker.close()
        await pools.close()
    }
}
