import CRdKafka
import Logging
import SluiceCore
import Synchronization

/// A topic as it should be.
package struct KafkaTopic: Hashable, Sendable {
    package var name: String
    package var partitions: Int32
    /// Copies of each partition; -1 takes the brokers' default.
    package var replicas: Int32
    /// The topic's settings, as Kafka names them: `retention.ms`, `cleanup.policy`, `max.message.bytes`.
    package var settings: [String: String]

    package init(_ name: String, partitions: Int32, replicas: Int32 = -1, settings: [String: String] = [:]) {
        self.name = name
        self.partitions = partitions
        self.replicas = replicas
        self.settings = settings
    }
}

/// Creates topics and asks about them. Each call blocks a thread of its own, never the caller's, for `requestTimeout` at most.
package final class KafkaAdmin: Sendable {
    private let configuration: KafkaConfiguration
    private let client: Mutex<KafkaPointer?>
    private let trouble: BrokerTrouble
    private let questions = BlockingQueue(label: "sluice.kafka.admin")

    /// Makes the client. Brokers are contacted in the background; none needs to answer yet.
    /// - Parameter trouble: where the causes of failed connections are kept, when other clients of the configuration share it.
    /// - Throws: `configInvalid` naming the setting that is refused.
    package init(_ configuration: KafkaConfiguration, trouble: BrokerTrouble = BrokerTrouble()) throws {
        self.configuration = configuration
        self.trouble = trouble
        client = Mutex(try configuration.makeClient(.admin))
    }

    /// Creates the topics that do not exist yet and waits until every one of them can be used.
    /// - Throws: `logTopic` when a topic exists with another number of partitions or cannot be created,
    ///   `logUnreachable` when no broker answers in time.
    package func create(_ topics: [KafkaTopic]) async throws {
        try await ask { client, configuration in
            let wanted = topics.sorted { $0.name < $1.name }
            try TopicRequests.create(wanted, client: client, configuration: configuration)
            for topic in wanted {
                let partitions = try TopicRequests.partitions(
                    of: topic.name, isExpected: true, client: client, configuration: configuration)
                guard partitions != topic.partitions else { continue }
                throw SluiceError(
                    .logTopic, "The topic \(topic.name) has \(partitions) partitions; \(topic.partitions) are configured.",
                    fix: "Set the number of partitions to \(partitions), or delete the topic: rows are spread by that number."
                )
            }
        }
    }

    /// Deletes topics; those that do not exist count as deleted.
    /// - Throws: `logTopic`, `logUnreachable`.
    package func delete(_ topics: [String]) async throws {
        try await ask { try TopicRequests.delete(topics, client: $0, configuration: $1) }
    }

    /// The number of partitions of a topic. Partitions without a leader are waited for.
    /// - Parameter isExpected: `true` if the topic has been created, so that a broker that does not know it is asked again.
    /// - Throws: `logTopic` when it does not exist, `logUnreachable` when no broker answers in time.
    package func partitionCount(of topic: String, isExpected: Bool = false) async throws -> Int32 {
        try await ask { try TopicRequests.partitions(of: topic, isExpected: isExpected, client: $0, configuration: $1) }
    }

    /// `true` if the brokers do not know the topic. Asks once.
    /// - Throws: `logTopic` when they say nothing of it, as without the right to, `logUnreachable` when no broker answers in time.
    package func isMissing(_ topic: String) async throws -> Bool {
        try await ask { try TopicRequests.isMissing(topic, client: $0, configuration: $1) }
    }

    /// The offsets that a partition has. Costs two requests to its leader, which is waited for, as the partition is.
    /// - Throws: `logTopic` when it still does not exist after `requestTimeout`, `logUnreachable` when its leader does not answer in time.
    package func watermarks(of partition: KafkaPartition) async throws -> KafkaWatermarks {
        try await ask { try TopicRequests.watermarks(of: partition, client: $0, configuration: $1) }
    }

    /// The offsets that each partition of a topic has.
    package func watermarks(ofTopic topic: String) async throws -> [KafkaWatermarks] {
        try await ask { client, configuration in
            let count = try TopicRequests.partitions(of: topic, client: client, configuration: configuration)
            return try (0..<count).map {
                try TopicRequests.watermarks(of: KafkaPartition(topic, $0), client: client, configuration: configuration)
            }
        }
    }

    /// Frees the client after the questions under way. Required. Closing twice is harmless.
    package func close() async {
        try? await questions.run { [self] in
            guard let client = client.withLock({ $0.take() }) else { return }
            unsafe rd_kafka_destroy(client.raw)
        }
    }

    func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (KafkaPointer, KafkaConfiguration) throws -> Answer
    ) async throws -> Answer {
        try await questions.run { [self] in
            guard let client = client.withLock({ $0 }) else {
                throw SluiceError(.logUnreachable, "The Kafka admin client is closed.", fix: "Ask before closing it.")
            }
            do {
                let answer = try question(client, configuration)
                trouble.clear()
                return answer
            } catch let error as SluiceError where error.code == .logUnreachable {
                noteEvents(of: client)
                throw trouble.explain(error)
            }
        }
    }

    /// Takes what has gathered, since nobody waits for it.
    private func noteEvents(of client: KafkaPointer) {
        guard let queue = unsafe rd_kafka_queue_get_main(client.raw) else { return }
        defer { unsafe rd_kafka_queue_destroy(queue) }
        while let event = unsafe rd_kafka_queue_poll(queue, 0) {
            if unsafe rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR { unsafe trouble.note(errorEvent: event) }
            unsafe rd_kafka_event_destroy(event)
        }
    }
}
