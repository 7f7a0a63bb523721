import SluiceCore
import SluiceGateway
import SluiceKafka
import SluiceTools
import Testing

/// The judgement of a cluster by `sluice check`: facts in, findings out.
struct KafkaFindingsTests {
    static let topics: [RequiredTopics.Topic] = [
        .init(name: "app.progress", use: .progress, partitions: 1), .init(name: "app.Item", use: .changes, partitions: 16),
        .init(name: "app.ingest.Reading", use: .ingest, partitions: 16),
    ]

    /// A cluster of three brokers with every topic, without a finding.
    static func fit(_ change: (inout ClusterFacts) -> Void = { _ in }) -> ClusterFacts {
        var facts = ClusterFacts()
        facts.brokers = 3
        for topic in topics {
            facts.topics[topic.name] = .init(
                partitions: Int(topic.partitions), replicas: 3, inSync: 3,
                settings: [
                    "max.message.bytes": "\(20 << 20)", "retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete",
                    "min.insync.replicas": "2",
                ])
        }
        change(&facts)
        return facts
    }

    private static func findings(_ facts: ClusterFacts, bytes: Int = 20 << 20, refusals: [SluiceError] = []) -> [CheckFinding] {
        KafkaFindings(facts, topics: topics, servers: "k:9092", producerBytes: bytes, refusals: refusals).findings
    }

    private static func words(_ facts: ClusterFacts) -> [String] { findings(facts).map { "\($0.severity.rawValue) \($0.subject)" } }

    @Test func `a cluster that fits has no finding`() { #expect(Self.findings(Self.fit()) == []) }

    static let cases: [(change: @Sendable (inout ClusterFacts) -> Void, words: [String])] = [
        ({ $0.topics["app.progress"]?.partitions = 3 }, ["error app.progress"]),
        ({ $0.topics["app.Item"]?.partitions = 3 }, []),
        ({ $0.topics["app.Item"]?.settings["cleanup.policy"] = "compact" }, ["error app.Item"]),
        ({ $0.topics["app.progress"]?.settings["cleanup.policy"] = "compact,delete" }, ["error app.progress"]),
        ({ $0.topics["app.Item"]?.settings["max.message.bytes"] = "1048588" }, ["warning app.Item"]),
        ({ $0.topics["app.Item"]?.settings["max.message.bytes"] = "\(RowBound.neededRecordBytes)" }, []),
        ({ $0.topics["app.progress"]?.settings["max.message.bytes"] = "1048588" }, []),
        ({ $0.topics["app.Item"]?.inSync = 1 }, ["error app.Item"]),
        ({ $0.topics["app.Item"]?.settings["min.insync.replicas"] = "1" }, ["warning app.Item"]),
        (
            {
                $0.topics["app.Item"]?.replicas = 1
                $0.topics["app.Item"]?.inSync = 1
                $0.topics["app.Item"]?.settings["min.insync.replicas"] = "1"
            }, ["warning app.Item"]
        ),
        ({ $0.topics["app.ingest.Reading"]?.settings["retention.ms"] = "3600000" }, ["warning app.ingest.Reading"]),
        ({ $0.topics["app.ingest.Reading"]?.settings["retention.ms"] = "-1" }, []),
        ({ $0.topics["app.ingest.Reading"]?.settings["retention.bytes"] = "1000000" }, ["warning app.ingest.Reading"]),
        ({ $0.topics["app.Item"]?.settings["retention.ms"] = "60000" }, ["warning app.Item"]),
        ({ $0.topics["app.Item"]?.settings = [:] }, []),
        ({ $0.defaults["unclean.leader.election.enable"] = "true" }, ["warning unclean.leader.election.enable"]),
        (
            {
                $0.topics["app.Item"] = nil
                $0.missing = ["app.Item"]
                $0.defaults["default.replication.factor"] = "1"
            }, ["note topics", "warning default.replication.factor"]
        ),
        (
            {
                $0.topics["app.Item"] = nil
                $0.missing = ["app.Item"]
                $0.defaults["default.replication.factor"] = "3"
            }, ["note topics"]
        ),
        (
            {
                $0.denials = [
                    .init(SluiceError(.logNotAuthorized, "The Kafka brokers deny an operation on the topic app.Item.")),
                    .init(SluiceError(.logNotAuthorized, "The Kafka brokers deny an operation on the topic app.Item."), isOfSettings: true),
                ]
            }, ["error rights", "warning rights"]
        ),
    ]

    @Test(arguments: cases.indices) func `each problem has its severity and the topic`(index: Int) {
        let (change, words) = Self.cases[index]
        #expect(Self.words(Self.fit(change)) == words)
    }

    @Test func `a topic of dead letters is copied before it is deleted, and that of the progress is not`() {
        let rejected = RequiredTopics.Topic(name: "app.ingest-rejected", use: .deadLetters, partitions: 1)
        var facts = Self.fit { $0.topics["app.progress"]?.partitions = 3 }
        facts.topics[rejected.name] = .init(partitions: 3, replicas: 3, inSync: 3)
        let found = KafkaFindings(facts, topics: Self.topics + [rejected], servers: "k:9092", producerBytes: 20 << 20).findings
        #expect(found.map(\.subject) == ["app.progress", "app.ingest-rejected"])
        #expect(found.map { $0.fix.hasPrefix("Copy the rejected objects") } == [false, true])
        #expect(found.map { $0.fix.contains("compare their rows") } == [true, false])
    }

    @Test(arguments: [(3, 1), (3, 2), (2, 1)]) func `too few replicas in sync have a command that lets records in`(
        replicas: Int, inSync: Int
    ) {
        let facts = Self.fit { facts in
            facts.topics["app.Item"]?.settings["min.insync.replicas"] = "\(inSync + 1)"
            facts.topics["app.Item"]?.replicas = replicas
            facts.topics["app.Item"]?.inSync = inSync
        }
        let found = Self.findings(facts)
        #expect(found.map(\.severity) == [.error])
        #expect(found.first?.commands.first?.hasSuffix("--add-config min.insync.replicas=\(inSync)") == true, "\(found)")
        #expect(found.first?.fix.contains("lost with them") == true)
    }

    @Test func `the commands name a file of settings if the brokers are reached by TLS or SASL`() throws {
        let facts = Self.fit {
            $0.topics["app.progress"]?.partitions = 3
            $0.topics["app.Item"]?.settings["cleanup.policy"] = "compact"
            $0.defaults["unclean.leader.election.enable"] = "true"
        }
        for needsFile in [false, true] {
            let found = KafkaFindings(facts, topics: Self.topics, servers: "k:1", needsClientFile: needsFile, producerBytes: 20 << 20)
                .findings
            let commands = found.flatMap(\.commands)
            #expect(commands.count == 3 && commands.allSatisfy { $0.contains(" --bootstrap-server k:1 ") })
            #expect(commands.allSatisfy { $0.contains(" --command-config client.properties ") == needsFile }, "\(commands)")
        }
        #expect(try KafkaSettings(parsing: "security.protocol = SASL_SSL", file: "f").hasSecurity)
        #expect(try !KafkaSettings(parsing: "security.protocol=plaintext\nclient.rack=a", file: "f").hasSecurity)
    }

    @Test func `one broker is a note, and its single replicas are no further finding`() {
        let facts = Self.fit { facts in
            facts.brokers = 1
            for topic in facts.topics.keys {
                facts.topics[topic]?.replicas = 1
                facts.topics[topic]?.inSync = 1
                facts.topics[topic]?.settings["min.insync.replicas"] = "1"
            }
        }
        #expect(Self.words(facts) == ["note brokers"])
    }

    @Test func `a refused creation is one error, however many topics it concerns`() {
        let refusal = SluiceError(.logNotAuthorized, "The Kafka brokers deny the operation Create on the cluster.", fix: "Allow it.")
        let findings = Self.findings(Self.fit(), refusals: [refusal, refusal])
        #expect(findings.map(\.severity) == [.error] && findings.first?.fix == "Allow it.")
    }

    @Test func `a producer with a smaller bound is a warning, and a setting of a topic has its command`() {
        #expect(Self.findings(Self.fit(), bytes: 1 << 20).map(\.subject) == ["message.max.bytes"])
        let small = Self.findings(Self.fit { $0.topics["app.Item"]?.settings["max.message.bytes"] = "1000" })
        #expect(
            small.first?.commands == [
                "kafka-configs --bootstrap-server k:9092 --alter --entity-type topics --entity-name app.Item --add-config max.message.bytes=20971520"
            ])
    }
}
