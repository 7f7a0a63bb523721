import Logging
import ServiceLifecycle
import SluiceCore
import SluiceEmbeddedLog
import SluiceIdentity
import SluicePipeline
import SluicePorts
import SluicePostgres

/// Joins the adapters of a gateway to the pipeline's ports. Each function makes one part from those made before.
struct GatewayBuilder {
    /// The app's schema, its tables, and the schema recorded in the database.
    struct Model {
        let schema: GatewaySchema
        let tables: GatewayTables
        let applied: AppliedSchema

        /// The tables as the stores look them up.
        var shapes: PostgresRowStore.Tables { { [tables] in try tables.shape(of: $0) } }
    }

    /// The way from the change log to the sessions.
    struct Delivery {
        let frames: SocketFrames
        let fanout: Fanout
        let feed: Feed
        let resume: LogResume
        let watch: SessionWatch
        let marker: PostgresMarker
    }

    /// The way of asymmetric objects.
    struct Ingest {
        let store: PostgresIngest
        let intake: any IngestIntake
        let watch: IngestWatch
    }

    /// The way from the WAL to the change log.
    struct Publishing {
        let publisher: Publisher
        let schemaWatch: SchemaWatch
        let recordBounds: RecordBoundWatch
        let watch: PublisherWatch
    }

    let configuration: GatewayConfiguration
    let outside: GatewayOutside
    let topics: Topics
    let log: any MessageLog
    let logger: Logger
    let environment: any Environment
    let readiness = Readiness()

    var app: AppConfiguration { configuration.app }
    var pool: PostgresPool { outside.pools.main }
    private var uploads: UploadSpans? { outside.telemetry.uploads(of: app.appID) }

    init(_ configuration: GatewayConfiguration, _ outside: GatewayOutside, logger: Logger, environment: any Environment) {
        self.configuration = configuration
        self.outside = outside
        let topics = configuration.app.topics
        self.topics = outside.kafka == nil ? topics.withoutEvents : topics
        log = outside.kafka ?? EmbeddedLog(environment: environment)
        self.logger = logger
        self.environment = environment
    }

    /// Makes all parts.
    ///
    /// - Throws: The first part that does not fit. The caller closes `outside`.
    func build() async throws -> GatewayParts {
        let model = try await openModel()
        let functions = try FunctionDispatcher.open(
            app, http: outside.http, plugins: PluginFunctions(generations: outside.generations), metrics: outside.metrics,
            environment: environment, logger: logger)
        noteMissing(functions)
        let rules = try await startRules(model, functions)
        let mail = try GatewayMail.open(configuration, metrics: outside.metrics, environment: environment, logger: logger)
        let access = try await GatewayAccess.open(
            pool: pool, app: app, isDevelopment: configuration.isDevelopment, passwordCost: configuration.passwordCost,
            outside: .init(http: outside.http, mail: mail?.accounts, functions: functions), environment: environment, logger: logger)
        outside.metrics.show(outside.generations.missing)
        let quarantine = QuarantineKeeper(
            store: QuarantineStore(pool: pool), tables: model.tables, metrics: outside.metrics, logger: logger)
        let delivery = makeDelivery(model.schema)
        let ingest = try await openIngest(model, rules)
        let sessions = sessionServices(model, rules, access, quarantine, delivery, ingest)
        let publishing = await openPublishing(model, quarantine)
        let letters = DeadLetterStore(pool: pool)
        let stores = GatewayParts.Stores(
            letters: DeadLetterReplay(
                letters: letters, intake: ingest.intake, authority: model.schema, hasTopic: outside.kafka != nil),
            idempotency: IdempotencyKeys(store: IngestRequestStore(pool: pool), environment: environment, logger: logger),
            audit: AuditLog(pool: pool))
        let events = try await eventServices(functions) + triggerServices(model, functions)
        let services =
            pipelineServices(delivery, publishing, sessions) + watchServices(model, publishing, quarantine, access)
            + cleaningServices(stores, publishing, letters) + kafkaServices(model, rules, ingest, letters) + events
            + (mail.map { [$0.service] } ?? [])
        return GatewayParts(
            outside,
            .init(
                schema: model.schema, access: access, readiness: readiness, watch: delivery.watch, quarantine: quarantine,
                marker: delivery.marker),
            stores, sessionServices: sessions, services: services)
    }

    /// Logs the functions that logins need and that nothing runs.
    private func noteMissing(_ functions: any AppFunctions) {
        for name in app.users.passwordLogin.functions where !functions.canCall(name) {
            logger.warning(
                "A function that registration or a reset of passwords needs cannot be called.",
                metadata: ["function": .string(name), "fix": "Name the service behind it in sluice.json."])
        }
    }

    private func openModel() async throws -> Model {
        let tables = GatewayTables(app: app, pool: pool, names: outside.names, logger: logger)
        let applied = AppliedSchema(store: AppSchemaStore(pool: pool))
        // Nothing is recorded or published of a schema that breaks the one in use; the first throw ends the start.
        if !configuration.isDevelopment { try await applied.requireNoBreak(app) }
        let (generations, learned) = (outside.generations, configuration.learned)
        let schema = try await GatewaySchema.open(
            app.schema, fields: app.queryableFields, isDevelopment: configuration.isDevelopment, tables: tables, log: log, topics: topics
        ) { schema in
            try await generations.configure(schema)
            learned?(tables.record(of: schema))
        }
        // Recorded only once the tables fit, as other gateways adopt the recorded schema.
        if !configuration.isDevelopment { try await applied.record(app) }
        let (slot, pool, logger) = (outside.names.slot, pool, logger)
        try await PostgresError.translating { try await PostgresCapture.ensureSlot(slot, pool, logger) }
        return Model(schema: schema, tables: tables, applied: applied)
    }

    private func startRules(_ model: Model, _ functions: any AppFunctions) async throws -> PluginRules {
        // Plugins may parse predicates while they are configured.
        outside.services.connect(model.schema)
        try await outside.generations.start(model.schema.current())
        return PluginRules(
            generations: outside.generations, authority: model.schema,
            functions: RuleFunctions(
                functions, facts: app.functionFacts, inPlugins: Set(app.functionPlugins.map(\.function)), environment: environment))
    }

    private func makeDelivery(_ schema: GatewaySchema) -> Delivery {
        let frames = SocketFrames()
        let watch = SessionWatch(metrics: outside.metrics, environment: environment, tracer: outside.telemetry.tracer)
        let marker = PostgresMarker(configuration.postgres)
        let fanout = Fanout(
            authority: schema, frames: frames, environment: environment, logger: logger,
            marks: WALHeartbeatWriter(marker, environment: environment, logger: logger), observer: watch, tracer: uploads)
        let feed = Feed(log: log, topics: topics, fanout: fanout, environment: environment, logger: logger)
        let resume = LogResume(log: log, feed: feed, environment: environment, logger: logger)
        return Delivery(frames: frames, fanout: fanout, feed: feed, resume: resume, watch: watch, marker: marker)
    }

    private func openIngest(_ model: Model, _ rules: PluginRules) async throws -> Ingest {
        let schema = model.schema
        let store = PostgresIngest(pool: pool, conninfo: configuration.postgres, tables: model.shapes)
        let watch = IngestWatch(metrics: outside.metrics, logger: logger)
        let refusals = IngestRejections(store: store, observer: watch, logger: logger)
        guard outside.kafka != nil else {
            return Ingest(
                store: store,
                intake: DirectIntake(store: store, rules: rules, authority: schema, refusals: refusals, observer: watch), watch: watch)
        }
        // External producers start when the gateway is ready. Brokers would create missing topics with a partition count of their own.
        for type in schema.current().schema.types where type.kind == .asymmetric {
            _ = try await schema.ingestPartitions(of: type.name)
        }
        let intake = LogIntake(log: log, topics: topics, refusals: refusals, partitions: { try await schema.ingestPartitions(of: $0) })
        return Ingest(store: store, intake: intake, watch: watch)
    }

    private func sessionServices(
        _ model: Model, _ rules: PluginRules, _ access: GatewayAccess, _ quarantine: QuarantineKeeper, _ delivery: Delivery,
        _ ingest: Ingest
    ) -> SessionServices {
        let (schema, tables) = (model.schema, model.tables)
        let leftOut = outside.metrics.number(.refusedBytesLeftOut)
        return SessionServices(
            access: SessionServices.Access(
                authenticator: access.authenticator, authority: schema, rules: rules, sealer: access.appKeys.sealer),
            storage: SessionServices.Storage(
                clients: PostgresClientRegistry(pool: pool, bound: outside.metrics.replicaBound),
                snapshots: PostgresSnapshots(pool: pool, streams: outside.pools.streams, tables: model.shapes, unfit: quarantine.met),
                committer: Committer(
                    store: writes(model), rules: rules, environment: environment,
                    bound: { [bounds = tables.bounds] in bounds[$0].current },
                    refused: RefusedValues(environment: environment, leftOut: { leftOut.add($0) }), tracer: uploads),
                ingest: TimedIntake(
                    ingest.intake, metrics: outside.metrics, environment: environment, tracer: outside.telemetry.tracer)),
            delivery: SessionServices.Delivery(
                feed: delivery.feed, fanout: delivery.fanout, resume: delivery.resume, layout: schema, frames: delivery.frames),
            environment: environment, logger: logger, isRecoveryAllowed: app.sync.isRecoveryAllowed, observer: delivery.watch)
    }

    private func writes(_ model: Model) -> any WriteStore {
        let rows = PostgresRowStore(
            pool: pool, waiting: outside.pools.judged, log: DurableLog(pool: outside.pools.disk), tables: model.shapes)
        let writes = PostgresWrites(rows: rows, foreignKeys: { [tables = model.tables] in tables.foreignKeys })
        return outside.telemetry.tracer.map { TracedWrites(store: writes, tracer: $0) } ?? writes
    }

    private func openPublishing(_ model: Model, _ quarantine: QuarantineKeeper) async -> Publishing {
        let (schema, tables) = (model.schema, model.tables)
        let schemaWatch = SchemaWatch(applied: model.applied, schema: schema, environment: environment, logger: logger)
        let recordBounds = RecordBoundWatch(
            log: log, topics: topics, schema: schema, bounds: tables.bounds, readiness: readiness, environment: environment, logger: logger)
        // The first clients need the topics' bounds, so the first look is not left to the service.
        await recordBounds.look()
        let watch = PublisherWatch(
            schema: schema, quarantine: quarantine, readiness: readiness, metrics: outside.metrics, logger: logger, bounds: recordBounds,
            uploads: uploads)
        let source = PostgresCapture(
            conninfo: configuration.postgres, names: outside.names,
            tables: CapturedTables(tables.mappings(of:), revision: { tables.revision }), bounds: tables.bounds, pool: pool, logger: logger)
        let publisher = Publisher(
            ports: Publisher.Ports(source: source, deletions: PostgresExternalDeletes(pool: pool), log: log), authority: schema,
            layouts: schema, topics: topics, environment: environment, logger: logger, catchUp: schemaWatch.catchUp, report: watch.report)
        return Publishing(publisher: publisher, schemaWatch: schemaWatch, recordBounds: recordBounds, watch: watch)
    }
}
