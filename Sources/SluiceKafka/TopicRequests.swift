import CRdKafka
import SluiceCore

/// The admin requests. They block; to be called on a thread of one's own.
enum TopicRequests {
    /// The number of partitions, as soon as all have a leader.
    /// - Parameter isExpected: `true` if the topic has been created, so that a broker that does not know it is behind the others.
    static func partitions(
        of name: String, isExpected: Bool = false, client: KafkaPointer, configuration: KafkaConfiguration
    ) throws -> Int32 {
        guard let topic = unsafe rd_kafka_topic_new(client.raw, name, nil) else { throw TopicMetadata.badName(name) }
        defer { unsafe rd_kafka_topic_destroy(topic) }
        let pointer = unsafe KafkaPointer(topic)
        return try TopicDelay.waitOut(isExpected: isExpected, configuration) {
            try TopicMetadata.partitions(of: name, topic: pointer, client: client, configuration: configuration)
        }
    }

    /// `true` if the broker that is asked does not know the topic.
    static func isMissing(_ name: String, client: KafkaPointer, configuration: KafkaConfiguration) throws -> Bool {
        guard let topic = unsafe rd_kafka_topic_new(client.raw, name, nil) else { throw TopicMetadata.badName(name) }
        defer { unsafe rd_kafka_topic_destroy(topic) }
        let pointer = unsafe KafkaPointer(topic)
        do {
            _ = try TopicMetadata.partitions(of: name, topic: pointer, client: client, configuration: configuration)
            return false
        } catch let delay as TopicDelay {
            return delay.reason == .unknown
        }
    }

    /// The offsets of a partition, as soon as its leader says them. A partition that is unknown may have been created just now.
    static func watermarks(of partition: KafkaPartition, client: KafkaPointer, configuration: KafkaConfiguration) throws -> KafkaWatermarks
    {
        try TopicDelay.waitOut(isExpected: true, configuration) {
            try watermarksNow(of: partition, client: client, configuration: configuration)
        }
    }

    private static func watermarksNow(
        of partition: KafkaPartition, client: KafkaPointer, configuration: KafkaConfiguration
    ) throws -> KafkaWatermarks {
        var low: Int64 = 0
        var high: Int64 = 0
        let timeout = Int32(configuration.requestTimeout.milliseconds)
        let error = unsafe rd_kafka_query_watermark_offsets(client.raw, partition.topic, partition.partition, &low, &high, timeout)
        if isMissingTopic(error) {
            throw TopicDelay(reason: .unknown, error: SluiceError(.logTopic, "The partition \(partition) does not exist."))
        }
        if let denial = KafkaOperation.describe.denial(error, topic: partition.topic) { throw denial }
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw TopicMetadata.refusal(error, asking: "about the offsets of \(partition)", configuration: configuration)
        }
        return KafkaWatermarks(low: low, high: high)
    }

    /// Creates topics; those that exist count as created. A cluster whose brokers are not all there yet is waited for.
    static func create(_ topics: [KafkaTopic], client: KafkaPointer, configuration: KafkaConfiguration) throws {
        guard !topics.isEmpty else { return }
        try TopicDelay.waitOut(isExpected: true, configuration) {
            try createNow(topics, client: client, configuration: configuration)
        }
    }

    private static func createNow(_ topics: [KafkaTopic], client: KafkaPointer, configuration: KafkaConfiguration) throws {
        var requests: [OpaquePointer?] = unsafe []
        defer { unsafe requests.forEach { unsafe rd_kafka_NewTopic_destroy($0) } }
        for topic in topics {
            var refused = "out of memory"
            let request = unsafe newTopic(topic, reason: &refused)
            guard let request = unsafe request else {
                throw SluiceError(.logTopic, "The topic \(topic.name) cannot be created with \(topic.partitions) partitions: \(refused).")
            }
            unsafe requests.append(request)
            for (key, value) in topic.settings { unsafe rd_kafka_NewTopic_set_config(request, key, value) }
        }
        let answers = try unsafe send(client, configuration, asking: "to the creation of topics", as: .create) { options, queue in
            unsafe rd_kafka_CreateTopics(client.raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            let result = unsafe rd_kafka_event_CreateTopics_result(event)
            return unsafe results(rd_kafka_CreateTopics_result_topics(result, &count), count)
        }
        for answer in answers where answer.error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS {
            if let denial = KafkaOperation.create.denial(answer.error, topic: answer.topic) { throw denial }
            let refused = SluiceError(.logTopic, "The topic \(answer.topic) cannot be created: \(answer.reason).")
            // Brokers of a cluster that is starting register one after another, and fewer than the copies of a partition may be there.
            guard isPassing(answer.error) || answer.error == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR else { throw refused }
            throw TopicDelay(reason: .notReady, error: refused)
        }
    }

    private static func newTopic(_ topic: KafkaTopic, reason: inout String) -> OpaquePointer? {
        var request: OpaquePointer?
        let refusal = unsafe withErrorText {
            unsafe request = rd_kafka_NewTopic_new(topic.name, topic.partitions, topic.replicas, $0, $1)
            return unsafe request != nil
        }
        if let refusal { reason = refusal }
        return unsafe request
    }

    static func delete(_ topics: [String], client: KafkaPointer, configuration: KafkaConfiguration) throws {
        guard !topics.isEmpty else { return }
        var requests: [OpaquePointer?] = unsafe topics.map { unsafe rd_kafka_DeleteTopic_new($0) }
        defer { unsafe requests.forEach { unsafe rd_kafka_DeleteTopic_destroy($0) } }
        let answers = try unsafe send(client, configuration, asking: "to the deletion of topics", as: .delete) { options, queue in
            unsafe rd_kafka_DeleteTopics(client.raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            let result = unsafe rd_kafka_event_DeleteTopics_result(event)
            return unsafe results(rd_kafka_DeleteTopics_result_topics(result, &count), count)
        }
        for answer in answers where !isMissingTopic(answer.error) {
            throw KafkaOperation.delete.denial(answer.error, topic: answer.topic)
                ?? SluiceError(.logTopic, "The topic \(answer.topic) cannot be deleted: \(answer.reason).")
        }
    }

    private struct TopicAnswer {
        var topic: String
        var error: rd_kafka_resp_err_t
        var reason: String
    }

    /// The topics that were refused.
    private static func results(_ topics: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int) -> [TopicAnswer] {
        (0..<count).compactMap { index in
            guard let topic = unsafe topics?[index] else { return nil }
            let error = unsafe rd_kafka_topic_result_error(topic)
            guard error != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
            let name = unsafe rd_kafka_topic_result_name(topic).map { unsafe String(cString: $0) } ?? "?"
            let reason = unsafe rd_kafka_topic_result_error_string(topic).map { unsafe String(cString: $0) } ?? text(of: error)
            return TopicAnswer(topic: name, error: error, reason: reason)
        }
    }

    /// Sends an admin request and waits for its result.
    /// - Parameter operation: the right that the request needs on the cluster.
    static func send<Answer>(
        _ client: KafkaPointer, _ configuration: KafkaConfiguration, asking what: String, as operation: KafkaOperation,
        request: (OpaquePointer?, OpaquePointer?) -> Void, read: (OpaquePointer) -> [Answer]
    ) throws -> [Answer] {
        let milliseconds = Int32(configuration.requestTimeout.milliseconds)
        let queue = unsafe rd_kafka_queue_new(client.raw)
        defer { unsafe rd_kafka_queue_destroy(queue) }
        let options = unsafe rd_kafka_AdminOptions_new(client.raw, RD_KAFKA_ADMIN_OP_ANY)
        defer { unsafe rd_kafka_AdminOptions_destroy(options) }
        _ = unsafe withErrorText {
            unsafe rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, $0, $1) == RD_KAFKA_RESP_ERR_NO_ERROR
        }
        unsafe request(options, queue)
        // The library ends the request by itself at the time-out; the second more is for its answer.
        guard let event = unsafe rd_kafka_queue_poll(queue, milliseconds + 1_000) else {
            throw TopicMetadata.unreachable(RD_KAFKA_RESP_ERR__TIMED_OUT, asking: what, configuration: configuration)
        }
        defer { unsafe rd_kafka_event_destroy(event) }
        let error = unsafe rd_kafka_event_error(event)
        if isUnreachable(error) { throw TopicMetadata.unreachable(error, asking: what, configuration: configuration) }
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw operation.denial(error, topic: nil)
                ?? SluiceError(.logTopic, "The Kafka brokers refused an answer \(what): \(text(of: error)).")
        }
        return unsafe read(event)
    }
}
