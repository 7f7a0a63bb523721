import CRdKafka
import SluiceCore
import SluicePorts

/// The admin requests. They block; call them on a dedicated thread.
enum TopicRequests {
    /// Returns the number of partitions as soon as all have a leader.
    ///
    /// - Parameter isExpected: `true` if the topic has been created: a broker that does not know it lags behind the others.
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

    /// Returns `true` if the broker that answers does not know the topic. After an error that passes, the topic counts as known.
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

    /// Returns the offsets of a partition as soon as its leader answers. An unknown partition may be new and is asked for again.
    static func watermarks(of partition: LogPartition, client: KafkaPointer, configuration: KafkaConfiguration) throws -> KafkaWatermarks {
        try TopicDelay.waitOut(isExpected: true, configuration) {
            try watermarksNow(of: partition, client: client, configuration: configuration)
        }
    }

    private static func watermarksNow(
        of partition: LogPartition, client: KafkaPointer, configuration: KafkaConfiguration
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

    /// Sends the creation of topics as a validation: the brokers answer as they would, and create none. Does not wait for a cluster that
    /// is starting.
    static func validate(_ topics: [KafkaTopic], client: KafkaPointer, configuration: KafkaConfiguration) throws {
        try createNow(topics, validatesOnly: true, client: client, configuration: configuration)
    }

    /// Creates topics; existing ones count as created. Waits for a cluster whose brokers are still starting.
    static func create(_ topics: [KafkaTopic], client: KafkaPointer, configuration: KafkaConfiguration) throws {
        guard !topics.isEmpty else { return }
        try TopicDelay.waitOut(isExpected: true, configuration) {
            try createNow(topics, client: client, configuration: configuration)
        }
    }

    private static func createNow(
        _ topics: [KafkaTopic], validatesOnly: Bool = false, client: KafkaPointer, configuration: KafkaConfiguration
    ) throws {
        var requests: [OpaquePointer?] = unsafe []
        defer { unsafe requests.forEach { unsafe rd_kafka_NewTopic_destroy($0) } }
        for topic in topics {
            var refused = "out of memory"
            let request = unsafe newTopic(topic, reason: &refused)
            guard let request = unsafe request else {
                throw SluiceError(
                    .logTopic, "The topic \(topic.name) cannot be created with \(topic.partitions) partitions.", cause: .text(refused))
            }
            unsafe requests.append(request)
            for (key, value) in topic.settings { unsafe rd_kafka_NewTopic_set_config(request, key, value) }
        }
        let answers = try unsafe send(client, configuration, asking: "to the creation of topics", as: .create) { options, queue in
            if validatesOnly {
                _ = unsafe withErrorText {
                    unsafe rd_kafka_AdminOptions_set_validate_only(options, 1, $0, $1) == RD_KAFKA_RESP_ERR_NO_ERROR
                }
            }
            unsafe rd_kafka_CreateTopics(client.raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            let result = unsafe rd_kafka_event_CreateTopics_result(event)
            return unsafe results(rd_kafka_CreateTopics_result_topics(result, &count), count)
        }
        for answer in answers where answer.error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS {
            if let denial = KafkaOperation.create.denial(answer.error, topic: answer.topic) { throw denial }
            let refused = SluiceError(
                .logTopic, "The topic \(answer.topic) cannot be created.", cause: cause(of: answer.error, answer.reason))
            // Brokers of a starting cluster register one after another, and may be fewer than the replicas of a partition.
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

    /// Deletes topics; missing ones count as deleted.
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
                ?? SluiceError(.logTopic, "The topic \(answer.topic) cannot be deleted.", cause: cause(of: answer.error, answer.reason))
        }
    }

    private struct TopicAnswer {
        var topic: String
        var error: rd_kafka_resp_err_t
        var reason: String
    }

    /// Returns the topics whose request was rejected.
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
    ///
    /// - Parameter operation: The right that the request needs on the cluster.
    /// - Throws: `logUnreachable`, `logNotAuthorized`, `logTopic`.
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
        // The library ends the request at the timeout. The additional second is for its answer.
        guard let event = unsafe rd_kafka_queue_poll(queue, milliseconds + 1_000) else {
            throw TopicMetadata.unreachable(RD_KAFKA_RESP_ERR__TIMED_OUT, asking: what, configuration: configuration)
        }
        defer { unsafe rd_kafka_event_destroy(event) }
        let error = unsafe rd_kafka_event_error(event)
        if isUnreachable(error) { throw TopicMetadata.unreachable(error, asking: what, configuration: configuration) }
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw operation.denial(error, topic: nil)
                ?? SluiceError(.logTopic, "The Kafka brokers refused an answer \(what).", cause: cause(of: error))
        }
        return unsafe read(event)
    }
}
