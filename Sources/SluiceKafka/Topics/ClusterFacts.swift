import CRdKafka
package import SluiceCore

/// The state of a cluster and of some topics, as a client sees it. It holds no judgement.
package struct ClusterFacts: Hashable, Sendable {
    package struct Topic: Hashable, Sendable {
        package var partitions: Int
        /// The lowest number of replicas of a partition, and of those in sync.
        package var replicas: Int
        package var inSync: Int
        /// The effective settings by Kafka's names; empty if they cannot be read.
        package var settings: [String: String] = [:]

        package init(partitions: Int, replicas: Int, inSync: Int, settings: [String: String] = [:]) {
            (self.partitions, self.replicas, self.inSync, self.settings) = (partitions, replicas, inSync, settings)
        }

        package func number(_ setting: String) -> Int? { settings[setting].flatMap { Int($0) } }
    }

    /// A request that the brokers deny or do not answer.
    package struct Denial: Hashable, Sendable {
        /// The error, with the command that allows the request.
        package var error: SluiceError
        /// `true` if it asked for settings, which a gateway can do without.
        package var isOfSettings: Bool

        package init(_ error: SluiceError, isOfSettings: Bool = false) {
            self.error = error
            self.isOfSettings = isOfSettings
        }
    }

    /// The number of brokers.
    package var brokers = 0
    /// The existing topics among those asked for.
    package var topics: [String: Topic] = [:]
    /// The topics that do not exist.
    package var missing: [String] = []
    /// The settings of one broker, which new topics get; empty if they cannot be read.
    package var defaults: [String: String] = [:]
    package var denials: [Denial] = []

    package init() {}

    package func number(_ setting: String) -> Int? { defaults[setting].flatMap { Int($0) } }

    /// The settings of topics that are read.
    static let topicSettings: Set<String> = [
        "max.message.bytes", "retention.ms", "retention.bytes", "cleanup.policy", "min.insync.replicas",
    ]
    /// The settings of brokers that are read.
    static let brokerSettings: Set<String> = [
        "authorizer.class.name", "default.replication.factor", "min.insync.replicas", "unclean.leader.election.enable", "log.retention.ms",
        "log.retention.hours",
    ]
}

extension KafkaAdmin {
    /// Reads the state of the cluster and of the named topics. Changes nothing.
    ///
    /// It asks in three requests, each within `requestTimeout`, and once more for each missing topic.
    /// - Throws: `logUnreachable` if no broker answers the first request. Later failures are in the result.
    package func facts(of topics: [String]) async throws -> ClusterFacts {
        try await ask { client, configuration in
            var facts = ClusterFacts()
            let broker = try ClusterRequests.describe(Set(topics), client: client, configuration: configuration, &facts)
            for topic in topics.sorted() where facts.topics[topic] == nil {
                // A listing leaves out the topics that the account may not describe.
                try facts.noting {
                    if try TopicRequests.isMissing(topic, client: client, configuration: configuration) { $0.missing.append(topic) }
                }
            }
            let known = facts.topics.keys.sorted()
            try facts.noting(isOfSettings: true) { facts in
                let found = try TopicSettings.read(ClusterFacts.topicSettings, of: known, client: client, configuration: configuration)
                for (topic, values) in found { facts.topics[topic]?.settings = values }
            }
            try facts.noting(isOfSettings: true) {
                $0.defaults = try TopicSettings.read(
                    ClusterFacts.brokerSettings, ofBroker: broker, client: client, configuration: configuration)
            }
            return facts
        }
    }

    /// Returns the errors with which the brokers would refuse the creation of topics. Creates none: the request is marked as a
    /// validation.
    ///
    /// - Throws: `logUnreachable`.
    package func refusals(ofCreating topics: [KafkaTopic]) async throws -> [SluiceError] {
        try await ask { client, configuration in
            var refused: [SluiceError] = []
            for topic in topics {
                do {
                    try TopicRequests.validate([topic], client: client, configuration: configuration)
                } catch let error as SluiceError where error.code != .logUnreachable {
                    refused.append(error)
                } catch let delay as TopicDelay {
                    refused.append(delay.error)
                }
            }
            return refused
        }
    }
}

extension ClusterFacts {
    /// Runs a request, and notes its failure. Does nothing once a request had no answer, so that there is one such wait.
    fileprivate mutating func noting(isOfSettings: Bool = false, _ request: (inout ClusterFacts) throws -> Void) throws {
        guard !denials.contains(where: { $0.error.code == .logUnreachable }) else { return }
        do {
            try request(&self)
        } catch let error as SluiceError {
            denials.append(Denial(error, isOfSettings: isOfSettings))
        }
    }
}

/// Requests about the whole cluster that block until a broker answers. Call them on a dedicated thread.
private enum ClusterRequests {
    /// Fills in the brokers and the existing topics.
    ///
    /// - Returns: The id of a broker.
    static func describe(
        _ names: Set<String>, client: KafkaPointer, configuration: KafkaConfiguration, _ facts: inout ClusterFacts
    ) throws -> Int32 {
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let error = unsafe rd_kafka_metadata(client.raw, 1, nil, &metadata, Int32(configuration.requestTimeout.milliseconds))
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe metadata else {
            throw TopicMetadata.unreachable(error, asking: "about the cluster", configuration: configuration)
        }
        defer { unsafe rd_kafka_metadata_destroy(answer) }
        facts.brokers = Int(unsafe answer.pointee.broker_cnt)
        for index in 0..<Int(unsafe answer.pointee.topic_cnt) {
            let found = unsafe answer.pointee.topics[index]
            guard let name = unsafe found.topic.map({ unsafe String(cString: $0) }), names.contains(name),
                unsafe found.err == RD_KAFKA_RESP_ERR_NO_ERROR, unsafe found.partition_cnt > 0
            else { continue }
            var topic = ClusterFacts.Topic(partitions: Int(unsafe found.partition_cnt), replicas: .max, inSync: .max)
            for partition in 0..<topic.partitions {
                let state = unsafe found.partitions[partition]
                topic.replicas = min(topic.replicas, Int(unsafe state.replica_cnt))
                topic.inSync = min(topic.inSync, Int(unsafe state.isr_cnt))
            }
            facts.topics[name] = topic
        }
        return facts.brokers > 0 ? unsafe answer.pointee.brokers[0].id : 0
    }
}
