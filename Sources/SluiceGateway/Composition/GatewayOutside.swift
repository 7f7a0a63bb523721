import Logging
import SluiceCore
import SluiceKafka
import SluiceNet
import SluicePluginHost
import SluicePostgres

/// The systems outside the pipeline: databases, brokers and plugins.
struct GatewayOutside: Sendable {
    let pools: GatewayPools
    let names: ReplicationNames
    /// nil with the embedded log.
    let kafka: KafkaLog?
    let generations: RuleGenerations
    let plugins: RulePlugins
    let services: PluginServices
    let telemetry: Telemetry
    /// The way to key sets, login providers and webhooks.
    let http: OutboundClient

    var metrics: Metrics { telemetry.metrics }

    /// Connects to PostgreSQL and Kafka, and reads the files of the plugins. No plugin is started yet.
    ///
    /// - Throws: The first missing or unfit system. The systems opened before it are closed.
    static func open(
        _ configuration: GatewayConfiguration, _ telemetry: Telemetry, logger: Logger, environment: any Environment
    ) async throws -> GatewayOutside {
        let pools = GatewayPools(configuration.postgres)
        var kafka: KafkaLog?
        do {
            // Before any wait, so that a wrong Kafka setting fails at once.
            kafka = try openKafka(configuration, logger: logger)
            let needs = configuration.isDevelopment ? nil : DatabaseNeeds(configuration.app, others: configuration.plugins.files)
            let names = try await PostgresPreparation.prepare(pools.main, app: configuration.app.appID, needs: needs, logger: logger)
            let records = PluginRecords(
                log: kafka, app: configuration.app.appID, isDevelopment: configuration.isDevelopment, logger: logger)
            let services = PluginServices(users: UserStore(pool: pools.questions))
            let plugins = RulePlugins(configuration, records: records, services: services, telemetry: telemetry, logger: logger)
            let customData = CustomDataTable(pool: pools.questions)
            let generations = RuleGenerations(
                try plugins.chain(configuration.app), app: configuration.app, environment: environment
            ) { app in
                try await PostgresError.translating { try await customData.columns(of: app) }
            }
            return GatewayOutside(
                pools: pools, names: names, kafka: kafka, generations: generations, plugins: plugins, services: services,
                telemetry: telemetry, http: try OutboundClient())
        } catch {
            await kafka?.close()
            await pools.close()
            throw error
        }
    }

    private static func openKafka(_ configuration: GatewayConfiguration, logger: Logger) throws -> KafkaLog? {
        guard let servers = configuration.kafka else { return nil }
        let settings = KafkaConfiguration(
            bootstrapServers: servers, clientID: "sluice-\(configuration.app.appID)", settings: configuration.kafkaSettings)
        return try KafkaLog(settings, logger: logger)
    }

    func close() async {
        await generations.stop()
        await kafka?.close()
        await pools.close()
    }
}
