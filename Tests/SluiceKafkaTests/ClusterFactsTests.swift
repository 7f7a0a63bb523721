import SluiceCore
import SluiceKafka
import Testing

/// What `sluice check` reads from a cluster.
@Suite(.timeLimit(.minutes(2)))
struct ClusterFactsTests {
    @Test func `a real broker tells its topics with their settings, and which are missing`() async throws {
        let (known, unknown) = (uniqueTopic("facts"), uniqueTopic("none"))
        try await withAdmin(try realBroker()) { admin in
            try await admin.create([KafkaTopic(known, partitions: 3, settings: ["retention.ms": "3600000", "cleanup.policy": "delete"])])
            let facts = try await admin.facts(of: [known, unknown])
            #expect(facts.brokers == 1 && facts.missing == [unknown] && facts.topics.keys.sorted() == [known])
            let topic = try #require(facts.topics[known])
            #expect(topic.partitions == 3 && topic.replicas == 1 && topic.inSync == 1)
            #expect(topic.number("retention.ms") == 3_600_000, "\(topic.settings)")
            // Asking has created nothing.
            #expect(try await admin.isMissing(unknown))
            try await admin.delete([known])
        }
    }

    @Test func `brokers that are away are an error within the limit, not facts`() async throws {
        var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
        configuration.requestTimeout = .seconds(1)
        let error = await failure { try await withAdmin(configuration) { _ = try await $0.facts(of: ["t"]) } }
        #expect(error?.code == .logUnreachable && error?.message.contains("127.0.0.1:1") == true, "\(String(describing: error))")
    }

    /// The mock answers no request for settings.
    @Test func `replicas are counted over all brokers, also where settings cannot be read`() async throws {
        let cluster = try MockCluster(brokers: 3)
        let topic = uniqueTopic("replicas")
        cluster.createTopic(topic, partitions: 2)
        var configuration = cluster.configuration
        configuration.requestTimeout = .seconds(5)
        try await withAdmin(configuration) { admin in
            let facts = try await admin.facts(of: [topic])
            #expect(facts.denials.map(\.error.code) == [.logUnreachable] && facts.topics[topic]?.settings == [:], "\(facts.denials)")
            let found = try #require(facts.topics[topic])
            #expect(facts.brokers == 3 && found.partitions == 2)
            // The mock has a default of its own, whatever factor the topic is made with.
            #expect((1...3).contains(found.replicas) && found.inSync == found.replicas, "\(found)")
        }
    }

    @Test func `the creation of topics is asked about without creating one`() async throws {
        let topic = uniqueTopic("validated")
        try await withAdmin(try realBroker()) { admin in
            let refusals = try await admin.refusals(ofCreating: [KafkaTopic(topic, partitions: 2)])
            let isMissing = try await admin.isMissing(topic)
            #expect(refusals == [] && isMissing)
        }
    }
}
