import Logging
import ServiceLifecycle
import SluiceCore
import SluiceIdentity
import SluiceKafka
import SluicePipeline
import SluicePorts
import SluicePostgres

/// The background services of a gateway. They start in the order of these functions and end in the opposite one.
extension GatewayBuilder {
    /// The stages of the pipeline, with the check that the watermark moves.
    func pipelineServices(_ delivery: Delivery, _ publishing: Publishing, _ sessions: SessionServices) -> [any Service] {
        let (feed, fanout, publisher, publisherWatch) = (delivery.feed, delivery.fanout, publishing.publisher, publishing.watch)
        let watermark = WatermarkWatch(
            fanout: fanout, readiness: readiness, environment: environment, logger: logger,
            pieces: { publisherWatch.pieces.count }, end: { try await sessions.snapshots.currentLSN() },
            cause: { [kafka = outside.kafka] in kafka?.trouble })
        return [
            BackgroundService("feed") { try await feed.run() },
            BackgroundService("publisher") { try await publisher.run() },
            BackgroundService("watermark") { try await watermark.run() },
        ]
    }

    /// The periodic checks of PostgreSQL and the log.
    func watchServices(
        _ model: Model, _ publishing: Publishing, _ quarantine: QuarantineKeeper, _ access: GatewayAccess
    ) -> [any Service] {
        let keys = SigningKeyWatch(keys: access.appKeys.signing, environment: environment, logger: logger)
        let slot = SlotWatch(pool: pool, slot: outside.names.slot, logger: logger)
        let tables = TableWatch(tables: model.tables, environment: environment, logger: logger)
        let partitions = PartitionKeeper(store: TimePartitionStore(pool: pool), environment: environment, logger: logger)
        let (environment, recordBounds) = (environment, publishing.recordBounds)
        return [
            BackgroundService("slot") { try await slot.run(environment) },
            BackgroundService("record bounds") { try await recordBounds.run() },
            BackgroundService("quarantine") { try await quarantine.run() },
            BackgroundService("tables") { try await tables.run() },
            BackgroundService("partitions") { try await partitions.run() },
            BackgroundService("signing keys") { try await keys.run() },
        ]
    }

    /// The removal of expired rows of the schema `sluice`, and the adoption of recorded schemas.
    func cleaningServices(_ stores: GatewayParts.Stores, _ publishing: Publishing, _ letters: DeadLetterStore) -> [any Service] {
        let (idempotency, schemaWatch) = (stores.idempotency, publishing.schemaWatch)
        let housekeeping = Housekeeping(
            stores: Housekeeping.Stores(
                clients: ClientStore(pool: pool), realm: PostgresRealmClients(pool: pool), letters: letters,
                writes: WriteRejectionStore(pool: pool), audit: stores.audit, users: Housekeeping.Users(pool: pool)),
            offlineDays: app.sync.maximumOfflineDays, hasTopic: outside.kafka != nil, environment: environment, logger: logger)
        var services: [any Service] = [BackgroundService("idempotency") { try await idempotency.prune() }]
        if !configuration.isDevelopment { services.append(BackgroundService("schema") { try await schemaWatch.run() }) }
        services.append(BackgroundService("housekeeping") { try await housekeeping.run() })
        return services
    }

    /// The delivery of events of users. Their topic exists before the gateway is ready, as readers may wait for it.
    func eventServices(_ functions: any AppFunctions) async throws -> [any Service] {
        let topic = topics.userEvents.map { UserEventRelay.Topic(log: log, name: $0, content: app.eventContent) }
        if let topic {
            _ = try await log.prepare([TopicSpec(name: topic.name, partitions: 1)])
            if topic.name != topics.changes(of: Topics.usersClass) {
                logger.notice(
                    "A class has the topic of users' events. They go to another one.",
                    metadata: ["class": .string(Topics.usersClass), "topic": .string(topic.name)])
            }
        }
        let relay = UserEventRelay(
            queue: UserEventStore(pool: pool), topic: topic,
            triggers: app.triggers, functions: functions, metrics: outside.metrics, environment: environment, logger: logger)
        return [BackgroundService("user events") { try await relay.run() }]
    }

    /// The relays of database triggers, one each. Changes count from the time when a trigger is first run, which is before the gateway is
    /// ready.
    func triggerServices(_ model: Model, _ functions: any AppFunctions) async throws -> [any Service] {
        let triggers = app.databaseTriggers
        let store = PostgresTriggerStore(pool: pool, conninfo: configuration.postgres)
        if !triggers.skipping.isEmpty { try await store.forget(triggers.skipping) }
        let schema = model.schema
        let layouts = try await schema.layout(of: schema.current()).layouts
        let ports = DatabaseTriggerRelay.Ports(
            log: log, store: store, functions: functions, schema: { schema.current() }, metrics: outside.metrics, environment: environment,
            logger: logger)
        var services: [any Service] = []
        for trigger in triggers.running {
            guard let layout = schema.current().schema.index(of: trigger.type).flatMap({ layouts[$0] }) else { continue }
            let topic = TriggerTopic(trigger: trigger.name, topic: layout.topic, partitions: layout.partitions)
            let ends = try await log.ends(of: (0..<topic.partitions).map { LogPartition(topic.topic, $0) })
            try await store.begin(topic, ends: Dictionary(ends.map { ($0.key.partition, $0.value) }) { first, _ in first })
            let relay = DatabaseTriggerRelay(trigger, topic: topic, ports: ports)
            services.append(BackgroundService("trigger \(trigger.name)") { await relay.run() })
        }
        return services
    }

    /// The sinks of the ingest log and the dead-letter topic. None with the embedded log, which has neither.
    func kafkaServices(_ model: Model, _ rules: PluginRules, _ ingest: Ingest, _ letters: DeadLetterStore) -> [any Service] {
        guard let kafka = outside.kafka else { return [] }
        let (store, topic) = (ingest.store, topics.deadLetters)
        let relay = DeadLetterRelay(
            letters: letters, log: kafka, topic: topic, longestAppend: kafka.longestAppend, environment: environment, logger: logger
        ) { try await !store.claim(topic: topic, partitions: 1).isEmpty }
        return [
            BackgroundService("dead letters") { try await relay.run() },
            IngestService(
                schema: model.schema, topics: topics, log: log, store: store, rules: rules, environment: environment, watch: ingest.watch,
                logger: logger),
        ]
    }
}
