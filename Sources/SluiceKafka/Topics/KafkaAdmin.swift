import CRdKafka
import Logging
import SluiceCore
package import SluicePorts
import Synchronization

/// The desired state of a topic.
package struct KafkaTopic: Hashable, Sendable {
    package var name: String
    package var partitions: Int32
    /// The number of replicas of each partition; -1 for the brokers' default.
    package var replicas: Int32
    /// The topic's settings by Kafka's names: `retention.ms`, `cleanup.policy`, `max.message.bytes`.
    package var settings: [String: String]

    package init(_ name: String, partitions: Int32, replicas: Int32 = -1, settings: [String: String] = [:]) {
        self.name = name
        self.partitions = partitions
        self.replicas = replicas
        self.settings = settings
    }
}

/// A client that creates topics and queries them.
///
/// Calls run one after another on a queue of their own, and never block the caller's thread. A request takes `requestTimeout` at
/// most; a call repeats passing failures for that time and may need several requests.
package final class KafkaAdmin: Sendable {
    private let configuration: KafkaConfiguration
    private let client: Mutex<KafkaPointer?>
    private let trouble: BrokerTrouble
    private let questions = BlockingQueue(label: "sluice.kafka.admin")

    /// Creates the client. Brokers are contacted in the background; none needs to answer yet.
    ///
    /// - Parameter trouble: The causes of failed connections, shared with other clients of the configuration.
    /// - Throws: `configInvalid` with the rejected setting.
    package init(_ configuration: KafkaConfiguration, trouble: BrokerTrouble = BrokerTrouble()) throws {
        self.configuration = configuration
        self.trouble = trouble
        client = Mutex(try configuration.makeClient(.admin))
    }

    /// Creates the topics that do not exist yet, and waits until every one of them can be used.
    ///
    /// - Throws: `logTopic` if a topic exists with another number of partitions or cannot be created. The error is
    ///   `logNotAuthorized` without the right to do so, and `logUnreachable` if no broker answers in time.
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

    /// Deletes topics; missing ones count as deleted.
    ///
    /// - Throws: `logNotAuthorized`, `logTopic`, `logUnreachable`.
    package func delete(_ topics: [String]) async throws {
        try await ask { try TopicRequests.delete(topics, client: $0, configuration: $1) }
    }

    /// Returns the number of partitions of a topic. Waits for partitions without a leader.
    ///
    /// - Parameter isExpected: `true` if the topic has been created, so that a broker that does not know it is asked again.
    /// - Throws: `logTopic` if it does not exist, `logUnreachable` if no broker answers in time.
    package func partitionCount(of topic: String, isExpected: Bool = false) async throws -> Int32 {
        try await ask { try TopicRequests.partitions(of: topic, isExpected: isExpected, client: $0, configuration: $1) }
    }

    /// Returns `true` if the brokers do not know the topic. Asks once.
    ///
    /// - Throws: `logNotAuthorized` without the right to describe it, `logTopic` for another error, `logUnreachable` if no broker
    ///   answers in time.
    package func isMissing(_ topic: String) async throws -> Bool {
        try await ask { try TopicRequests.isMissing(topic, client: $0, configuration: $1) }
    }

    /// Returns the offsets of a partition. Costs two requests to its leader. Waits for the partition and its leader.
    ///
    /// - Throws: `logTopic` if it still does not exist after `requestTimeout`, `logUnreachable` if its leader does not answer in
    ///   time.
    package func watermarks(of partition: LogPartition) async throws -> KafkaWatermarks {
        try await ask { try TopicRequests.watermarks(of: partition, client: $0, configuration: $1) }
    }

    /// Returns the offsets of each partition of a topic, by partition. Costs two requests for each.
    package func watermarks(ofTopic topic: String) async throws -> [KafkaWatermarks] {
        try await ask { client, configuration in
            let count = try TopicRequests.partitions(of: topic, client: client, configuration: configuration)
            return try (0..<count).map {
                try TopicRequests.watermarks(of: LogPartition(topic, $0), client: client, configuration: configuration)
            }
        }
    }

    /// Frees the client after the running request. Required; closing twice is harmless.
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
                // The cause of a lost connection is only in the client's events.
                noteEvents(of: client)
                throw trouble.explain(error)
            }
        }
    }

    /// Records the events that have gathered, because no thread waits for them.
    private func noteEvents(of client: KafkaPointer) {
        guard let queue = unsafe rd_kafka_queue_get_main(client.raw) else { return }
        defer { unsafe rd_kafka_queue_destroy(queue) }
        while let event = unsafe rd_kafka_queue_poll(queue, 0) {
            if unsafe rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR { unsafe trouble.note(errorEvent: event) }
            unsafe rd_kafka_event_destroy(event)
        }
    }
}
