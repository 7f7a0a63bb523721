import SluiceCore
import SluiceGateway
import SluiceKafka

/// Collects the facts about Kafka and the app's topics for `sluice check`.
struct LogCheck: Sendable {
    let options: GatewayCheck.Options
    let app: AppConfiguration?

    init(_ options: GatewayCheck.Options, _ app: AppConfiguration?) {
        self.options = options
        self.app = app
    }

    func run() async -> CheckReport {
        var report = CheckReport()
        guard let servers = options.kafka else {
            report.add([
                CheckFinding(
                    .note, .kafka, "--kafka",
                    "No Kafka is named: the embedded log serves one gateway, and loses its records with the gateway.")
            ])
            return report
        }
        guard let app else {
            report.skip(.kafka, "the app directory cannot be read.")
            return report
        }
        var configuration = KafkaConfiguration(
            bootstrapServers: servers, clientID: "sluice-check", settings: options.kafkaSettings)
        configuration.requestTimeout = GatewayCheck.patience
        do {
            let admin = try KafkaAdmin(configuration)
            let found: Result<[CheckFinding], any Error>
            do { found = .success(try await look(admin, configuration, app)) } catch { found = .failure(error) }
            await admin.close()
            report.add(try found.get())
        } catch {
            let error = SluiceError(of: error) ?? SluiceError(.logUnreachable, "\(error)")
            report.add([CheckFinding(.error, .kafka, "--kafka", error)])
            report.skip(.kafka, error.code == .logUnreachable ? "no broker answers." : "a client cannot be created.")
        }
        return report
    }

    private func look(_ admin: KafkaAdmin, _ configuration: KafkaConfiguration, _ app: AppConfiguration) async throws -> [CheckFinding] {
        let topics = RequiredTopics(app).all
        let facts = try await admin.facts(of: topics.map(\.name))
        let missing = Set(facts.missing)
        let wanted = topics.filter { missing.contains($0.name) }.map { KafkaTopic($0.name, partitions: $0.partitions) }
        let found = KafkaFindings(
            facts, topics: topics, servers: configuration.bootstrapServers, needsClientFile: options.kafkaSettings.hasSecurity,
            producerBytes: configuration.largestRecordBytes, refusals: try await admin.refusals(ofCreating: wanted)
        ).findings
        // One request without an answer is enough to wait for.
        guard !facts.denials.contains(where: { $0.error.code == .logUnreachable }) else { return found }
        let tool = KafkaTool(servers: configuration.bootstrapServers, needsClientFile: options.kafkaSettings.hasSecurity)
        return found
            + AccessFindings(
                await admin.access(facts), of: options.kafkaSettings.principal, topics: topics.map(\.name), tool: tool
            ).findings
    }
}
