import CRdKafka
package import SluiceCore
package import SluicePorts

/// Requests for settings and replicas of topics. They block; call them on a dedicated thread.
enum TopicSettings {
    /// Returns the effective values of some settings, by topic: the topic's own, otherwise the brokers'.
    ///
    /// - Throws: `logNotAuthorized`, `logTopic`, `logUnreachable`.
    static func read(
        _ names: Set<String>, of topics: [String], client: KafkaPointer, configuration: KafkaConfiguration
    ) throws -> [String: [String: String]] {
        guard !topics.isEmpty else { return [:] }
        return try read(names, RD_KAFKA_RESOURCE_TOPIC, topics, client: client, configuration: configuration)
    }

    /// Returns the effective values of some settings of a broker.
    ///
    /// - Throws: `logNotAuthorized`, `logTopic`, `logUnreachable`.
    static func read(
        _ names: Set<String>, ofBroker id: Int32, client: KafkaPointer, configuration: KafkaConfiguration
    ) throws -> [String: String] {
        try read(names, RD_KAFKA_RESOURCE_BROKER, ["\(id)"], client: client, configuration: configuration)["\(id)"] ?? [:]
    }

    private static func read(
        _ names: Set<String>, _ kind: rd_kafka_ResourceType_t, _ resources: [String], client: KafkaPointer,
        configuration: KafkaConfiguration
    ) throws -> [String: [String: String]] {
        let isTopic = kind == RD_KAFKA_RESOURCE_TOPIC
        let words = isTopic ? "about settings of topics" : "about settings of brokers"
        var requests: [OpaquePointer?] = unsafe resources.map { unsafe rd_kafka_ConfigResource_new(kind, $0) }
        defer { unsafe requests.forEach { unsafe rd_kafka_ConfigResource_destroy($0) } }
        let answers = try unsafe TopicRequests.send(
            client, configuration, asking: words, as: .describeConfigs
        ) { options, queue in
            unsafe rd_kafka_DescribeConfigs(client.raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            let resources = unsafe rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count)
            return (0..<count).compactMap { index in unsafe resources?[index].map { unsafe Answer($0, names) } }
        }
        for answer in answers where answer.error != RD_KAFKA_RESP_ERR_NO_ERROR {
            throw KafkaOperation.describeConfigs.denial(answer.error, topic: isTopic ? answer.topic : nil)
                ?? SluiceError(
                    .logTopic, "The settings of the \(isTopic ? "topic" : "broker") \(answer.topic) cannot be read.",
                    cause: cause(of: answer.error))
        }
        return Dictionary(answers.map { ($0.topic, $0.values) }, uniquingKeysWith: { first, _ in first })
    }

    private struct Answer {
        var topic: String
        var error: rd_kafka_resp_err_t
        var values: [String: String] = [:]

        init(_ resource: OpaquePointer, _ names: Set<String>) {
            topic = unsafe rd_kafka_ConfigResource_name(resource).map { unsafe String(cString: $0) } ?? "?"
            error = unsafe rd_kafka_ConfigResource_error(resource)
            var count = 0
            let entries = unsafe rd_kafka_ConfigResource_configs(resource, &count)
            for index in 0..<count {
                guard let entry = unsafe entries?[index], let name = unsafe rd_kafka_ConfigEntry_name(entry),
                    let value = unsafe rd_kafka_ConfigEntry_value(entry), names.contains(unsafe String(cString: name))
                else { continue }
                unsafe values[String(cString: name)] = String(cString: value)
            }
        }
    }

    /// Returns the number of in-sync replicas of each partition of a topic.
    static func inSyncReplicas(of name: String, client: KafkaPointer, configuration: KafkaConfiguration) throws -> [Int32: Int] {
        guard let topic = unsafe rd_kafka_topic_new(client.raw, name, nil) else { throw TopicMetadata.badName(name) }
        defer { unsafe rd_kafka_topic_destroy(topic) }
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let error = unsafe rd_kafka_metadata(client.raw, 0, topic, &metadata, Int32(configuration.requestTimeout.milliseconds))
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe metadata else {
            throw TopicMetadata.unreachable(error, asking: "about the topic \(name)", configuration: configuration)
        }
        defer { unsafe rd_kafka_metadata_destroy(answer) }
        var counts: [Int32: Int] = [:]
        for index in 0..<Int(unsafe answer.pointee.topic_cnt) {
            let found = unsafe answer.pointee.topics[index]
            for partition in 0..<Int(unsafe found.partition_cnt) {
                unsafe counts[found.partitions[partition].id] = Int(found.partitions[partition].isr_cnt)
            }
        }
        return counts
    }
}

extension KafkaAdmin {
    /// Returns the size in bytes of the largest record batch that each topic accepts (`max.message.bytes`), if the brokers report
    /// it.
    ///
    /// - Throws: `logNotAuthorized` without the right to read settings, `logTopic`, `logUnreachable`.
    package func recordBounds(of topics: [String]) async throws -> [String: Int] {
        try await ask { client, configuration in
            try TopicSettings.read(["max.message.bytes"], of: topics, client: client, configuration: configuration)
                .compactMapValues { $0["max.message.bytes"].flatMap(Int.init) }
        }
    }

    /// Returns the error of the first partition that has fewer in-sync replicas than a write needs; nil if all have enough.
    package func replicaShortage(of partitions: [LogPartition]) async throws -> SluiceError? {
        try await ask { client, configuration in
            for (topic, partitions) in Dictionary(grouping: partitions, by: \.topic).sorted(by: { $0.key < $1.key }) {
                let settings = try TopicSettings.read(
                    ["min.insync.replicas"], of: [topic], client: client, configuration: configuration)
                // Without the setting no shortage can be found.
                guard let needed = settings[topic]?["min.insync.replicas"].flatMap(Int.init) else { continue }
                let counts = try TopicSettings.inSyncReplicas(of: topic, client: client, configuration: configuration)
                for number in partitions.map(\.partition).sorted() {
                    guard let inSync = counts[number], inSync < needed else { continue }
                    return SluiceKafka.replicaShortage(topic: topic, partition: number, inSync: inSync, needed: needed)
                }
            }
            return nil
        }
    }
}
