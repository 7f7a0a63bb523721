package import SluiceCore
package import SluiceGateway
package import SluiceKafka

/// The judgement of a Kafka cluster and an app's topics: facts in, findings out.
package struct KafkaFindings: Sendable {
    package var facts: ClusterFacts
    package var topics: [RequiredTopics.Topic]
    /// The bootstrap servers, for commands.
    package var servers: String
    /// `true` if the brokers are reached by TLS or SASL, so that Kafka's own tools need a file with their settings.
    package var needsClientFile: Bool
    /// The largest record that the gateway's producer accepts, in bytes.
    package var producerBytes: Int
    /// The errors with which the brokers would refuse the creation of the missing topics.
    package var refusals: [SluiceError] = []

    /// A retention below which an outage of PostgreSQL of a day loses asymmetric objects, in milliseconds.
    static let ingestRetention = 86_400_000
    /// A retention below which most returning devices need a difference from the tables, in milliseconds.
    static let changeRetention = 3_600_000
    /// The replicas that keep acknowledged records through a failure of a broker.
    static let replicas = 3

    package init(
        _ facts: ClusterFacts, topics: [RequiredTopics.Topic], servers: String, needsClientFile: Bool = false, producerBytes: Int,
        refusals: [SluiceError] = []
    ) {
        self.facts = facts
        self.topics = topics
        self.servers = servers
        self.needsClientFile = needsClientFile
        self.producerBytes = producerBytes
        self.refusals = refusals
    }

    package var findings: [CheckFinding] {
        rights + producer + cluster + absent
            + topics.flatMap { topic in facts.topics[topic.name].map { self.findings(of: topic, $0) } ?? [] }
    }

    private func finding(
        _ severity: CheckFinding.Severity, _ subject: String, _ message: String, fix: String = "", commands: [String] = []
    ) -> CheckFinding {
        CheckFinding(severity, .kafka, subject, message, fix: fix, commands: commands)
    }

    private func alter(_ topic: String, _ setting: String) -> String {
        "\(tool("kafka-configs")) --alter --entity-type topics --entity-name \(topic) --add-config \(setting)"
    }

    private func tool(_ name: String) -> String { KafkaTool(servers: servers, needsClientFile: needsClientFile).command(name) }

    // MARK: The cluster

    private var rights: [CheckFinding] {
        // Without the right to read settings a gateway assumes that topics take its records.
        let denials = facts.denials.map { denial in
            CheckFinding(
                denial.error.code != .logNotAuthorized || denial.isOfSettings ? .warning : .error, .kafka, "rights", denial.error)
        }
        return denials
            + Set(refusals.map(\.description)).sorted().compactMap { text in
                refusals.first { $0.description == text }.map { CheckFinding(.error, .kafka, "rights", $0) }
            }
    }

    private var producer: [CheckFinding] {
        guard producerBytes < RowBound.neededRecordBytes else { return [] }
        return [
            finding(
                .warning, "message.max.bytes",
                "message.max.bytes of the Kafka settings is \(producerBytes), less than the \(RowBound.neededRecordBytes) of the largest record: "
                    + "larger objects are quarantined.", fix: "Remove the line, or raise it.")
        ]
    }

    private var cluster: [CheckFinding] {
        var all: [CheckFinding] = []
        if facts.defaults["unclean.leader.election.enable"] == "true" {
            all.append(
                finding(
                    .warning, "unclean.leader.election.enable",
                    "unclean.leader.election.enable is true: a broker that lags behind may become leader, and acknowledged records are lost.",
                    commands: [
                        "\(tool("kafka-configs")) --alter --entity-type brokers --entity-default --add-config unclean.leader.election.enable=false"
                    ]))
        }
        if facts.brokers == 1 {
            all.append(
                finding(
                    .note, "brokers",
                    "The cluster has one broker: while it is down, devices receive no changes and no asymmetric objects are accepted."
                ))
        }
        return all
    }

    private var absent: [CheckFinding] {
        guard !facts.missing.isEmpty else { return [] }
        let count = facts.missing.count
        var all = [
            finding(
                .note, "topics",
                "\(count) of the app's topics \(count == 1 ? "does" : "do") not exist yet. The first gateway creates \(count == 1 ? "it" : "them")."
            )
        ]
        if let factor = facts.number("default.replication.factor"), factor < Self.replicas, facts.brokers >= Self.replicas {
            all.append(
                finding(
                    .warning, "default.replication.factor",
                    "default.replication.factor is \(factor), and the gateway's topics get it: a failed broker loses acknowledged records.",
                    fix: "Set it to \(Self.replicas) in the brokers' configuration before the first gateway starts."))
        }
        return all
    }

    // MARK: A topic

    private func findings(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        partitions(of: topic, found) + cleanup(of: topic, found) + recordSize(of: topic, found) + replicas(of: topic, found)
            + retention(of: topic, found)
    }

    private func partitions(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        guard topic.use == .progress || topic.use == .deadLetters, found.partitions != 1 else { return [] }
        return [
            finding(
                .error, topic.name, "The topic \(topic.name) has \(found.partitions) partitions; the gateway uses 1 of it.",
                fix: topic.use == .progress
                    ? "Delete it. The next gateway creates it; devices then compare their rows with the tables."
                    : "Copy the rejected objects that are still needed: they are lost with the topic. Then delete it. The next gateway creates it.",
                commands: ["\(tool("kafka-topics")) --delete --topic \(topic.name)"])
        ]
    }

    private func cleanup(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        guard let policy = found.settings["cleanup.policy"], policy.contains("compact") else { return [] }
        return [
            finding(
                .error, topic.name, "cleanup.policy of the topic \(topic.name) is \(policy): compaction removes records that readers need.",
                commands: [alter(topic.name, "cleanup.policy=delete")])
        ]
    }

    private func recordSize(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        guard topic.use == .changes, let bytes = found.number("max.message.bytes"), bytes < RowBound.neededRecordBytes else { return [] }
        return [
            finding(
                .warning, topic.name,
                "max.message.bytes of the topic \(topic.name) is \(bytes), less than \(RowBound.neededRecordBytes): larger objects are rejected.",
                commands: [alter(topic.name, "max.message.bytes=\(20 << 20)")])
        ]
    }

    private func replicas(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        let needed = found.number("min.insync.replicas")
        if let needed, needed > found.inSync {
            return [
                finding(
                    .error, topic.name,
                    "The topic \(topic.name) has \(found.inSync) in-sync replicas, and min.insync.replicas is \(needed): no record is accepted.",
                    fix: "Start the brokers that are down. Or lower min.insync.replicas: records are then accepted on as few replicas, "
                        + "and lost with them.",
                    commands: [alter(topic.name, "min.insync.replicas=\(max(1, found.inSync))")])
            ]
        }
        guard facts.brokers > 1 else { return [] }
        if found.replicas < 2 {
            return [
                finding(
                    .warning, topic.name, "The topic \(topic.name) has one replica: a failed broker loses acknowledged records.",
                    fix: "Add replicas with kafka-reassign-partitions.")
            ]
        }
        guard needed == 1 else { return [] }
        return [
            finding(
                .warning, topic.name,
                "min.insync.replicas of the topic \(topic.name) is 1 of \(found.replicas): a failed leader can lose acknowledged records.",
                commands: [alter(topic.name, "min.insync.replicas=2")])
        ]
    }

    private func retention(of topic: RequiredTopics.Topic, _ found: ClusterFacts.Topic) -> [CheckFinding] {
        var all: [CheckFinding] = []
        if topic.use == .ingest, let bytes = found.number("retention.bytes"), bytes >= 0 {
            all.append(
                finding(
                    .warning, topic.name,
                    "retention.bytes of the topic \(topic.name) is \(bytes): objects beyond it are lost if PostgreSQL is down.",
                    commands: [alter(topic.name, "retention.bytes=-1")]))
        }
        guard let time = found.number("retention.ms"), time >= 0 else { return all }
        let bound = topic.use == .ingest ? Self.ingestRetention : topic.use == .changes ? Self.changeRetention : 0
        guard time < bound else { return all }
        all.append(
            finding(
                .warning, topic.name,
                topic.use == .ingest
                    ? "retention.ms of the topic \(topic.name) is \(time): objects are lost if PostgreSQL is down for longer."
                    : "retention.ms of the topic \(topic.name) is \(time): devices that were away for longer read the difference from PostgreSQL.",
                commands: [alter(topic.name, "retention.ms=604800000")]))
        return all
    }
}
