import CRdKafka
import SluiceCore

/// Requests about topics that block until a broker answers. Call them on a dedicated thread.
enum TopicMetadata {
    static func badName(_ topic: String) -> SluiceError {
        let fix = "Use letters, digits, '.', '_' and '-', up to 249 of them."
        return SluiceError(.logTopic, "\"\(topic)\" cannot be the name of a topic.", fix: fix)
    }

    /// Returns the number of partitions, all of which have a leader.
    ///
    /// - Throws: `TopicDelay` if the topic is unknown, a partition has no leader, or the error passes. Otherwise it is
    ///   `logNotAuthorized`, `logTopic` for other errors of the broker, or `logUnreachable` if no broker answers in time.
    static func partitions(of name: String, topic: KafkaPointer, client: KafkaPointer, configuration: KafkaConfiguration) throws -> Int32 {
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let error = unsafe rd_kafka_metadata(client.raw, 0, topic.raw, &metadata, Int32(configuration.requestTimeout.milliseconds))
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe metadata else {
            throw refusal(error, asking: "about the topic \(name)", configuration: configuration)
        }
        defer { unsafe rd_kafka_metadata_destroy(answer) }
        guard unsafe answer.pointee.topic_cnt > 0 else { throw missing(name) }
        let found = unsafe answer.pointee.topics[0]
        let code = unsafe found.err
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, unsafe found.partition_cnt > 0 else {
            // Without an error and without partitions, the topic is not known to this broker yet.
            if code == RD_KAFKA_RESP_ERR_NO_ERROR || isMissingTopic(code) { throw missing(name) }
            if let denial = KafkaOperation.describe.denial(code, topic: name) { throw denial }
            let refused = SluiceError(.logTopic, "The topic \(name) cannot be used.", cause: cause(of: code))
            guard isPassing(code) else { throw refused }
            throw TopicDelay(reason: .notReady, error: refused)
        }
        for index in 0..<Int(unsafe found.partition_cnt) where unsafe found.partitions[index].leader < 0 {
            throw unsafe TopicDelay(
                reason: .notReady,
                error: SluiceError(.logTopic, "Partition \(found.partitions[index].id) of the topic \(name) has no leader at present."))
        }
        return unsafe found.partition_cnt
    }

    private static func missing(_ name: String) -> TopicDelay {
        TopicDelay(reason: .unknown, error: SluiceError(.logTopic, "The topic \(name) does not exist."))
    }

    /// Returns the error of a request without an answer: a `TopicDelay` if it passes on its own.
    static func refusal(_ error: rd_kafka_resp_err_t, asking what: String, configuration: KafkaConfiguration) -> any Error {
        let refused = unreachable(error, asking: what, configuration: configuration)
        return isPassing(error) ? TopicDelay(reason: .notReady, error: refused) : refused
    }

    static func unreachable(_ error: rd_kafka_resp_err_t, asking what: String, configuration: KafkaConfiguration) -> SluiceError {
        let place = configuration.bootstrapServers
        return SluiceError(
            .logUnreachable,
            "The Kafka brokers at \(place) gave no answer \(what) within \(configuration.requestTimeout).", cause: cause(of: error))
    }
}
