package import Logging
import SluiceCore

/// Writes records to the log: idempotent, acknowledged by all in-sync replicas, in order within each partition.
///
/// A broker that restarts is waited for, up to the delivery time-out; nothing is lost or written twice meanwhile. When
/// the client's idempotence state is broken beyond repair (a fatal error of librdkafka), the records under way fail with
/// `logDelivery` and the client is replaced; records sent afterwards go through the new one.
/// The queue is bounded by `producerRecords` and `producerBytes`: beyond, senders wait in order, for the delivery time-out at most.
package final class KafkaProducer: Sendable {
    private let core: ProducerCore

    /// Makes the client and its thread. Brokers are contacted in the background; none needs to answer yet.
    /// - Parameter trouble: where the causes of failed connections are kept, when other clients of the configuration share it.
    /// - Throws: `configInvalid` naming the setting that is refused.
    package init(_ configuration: KafkaConfiguration, logger: Logger, trouble: BrokerTrouble? = nil) throws {
        core = ProducerCore(
            configuration, client: try ProducerClient(configuration), logger: logger, trouble: trouble ?? BrokerTrouble(logger: logger))
        try core.start()
    }

    /// Hands a batch over and waits until every record is acknowledged.
    /// - Returns: for each partition, the offset after the last record of the batch.
    /// - Throws: see `begin` and `KafkaDelivery.acknowledged`.
    package func produce(_ batch: KafkaRecordBatch) async throws -> [KafkaPartition: Int64] {
        try await begin(batch).acknowledged()
    }

    /// Hands a batch over, waiting for room only. Batches begun one after the other keep their order in each partition.
    /// The bytes are copied: the batch may be emptied and filled again at once.
    /// - Throws: `logFull` when no room came free in time, `logDelivery` when the producer is closed.
    package func begin(_ batch: KafkaRecordBatch) async throws -> KafkaDelivery {
        if batch.isEmpty { return KafkaDelivery(of: batch) }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        return core.enqueue(batch)
    }

    /// `produce`, for who wants to know of each record where it is.
    /// - Returns: the offset of each record, in the order of the batch.
    package func place(_ batch: KafkaRecordBatch) async throws -> [Int64] {
        if batch.isEmpty { return [] }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        let delivery = core.enqueue(batch, keepsAnswers: true)
        _ = try await delivery.acknowledged()
        return delivery.answers.map { if case .stored(let offset) = $0 { offset } else { -1 } }
    }

    /// `produce`, with the answer to each record.
    /// - Returns: the answers, in the order of the batch.
    /// - Throws: see `begin`; nothing has been sent then.
    package func offer(_ batch: KafkaRecordBatch) async throws -> [KafkaAnswer] {
        if batch.isEmpty { return [] }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        let delivery = core.enqueue(batch, keepsAnswers: true)
        do {
            _ = try await delivery.acknowledged()
        } catch {
            // Each record has its own.
        }
        return delivery.answers
    }

    /// Sends one record to the partition that its key hashes to (`Partitioner`) and waits until it is acknowledged.
    /// Concurrent senders share requests. Costs no task and no thread.
    /// - Returns: its offset.
    /// - Throws: `logDelivery`, `logRecordTooLarge`, `logTopic`; the message says when the record may have been stored all the same.
    package func send(topic: String, key: [UInt8], value: [UInt8]) async throws -> Int64 {
        try await core.room(records: 1, bytes: key.count + value.count)
        return try await withCheckedThrowingContinuation { continuation in
            core.enqueue(topic: topic, key: key, value: value, for: continuation)
        }
    }

    /// Looks topics up, so that the first record to each does not wait for it. One that is unknown may have been created just now.
    /// - Throws: `logTopic` when one still does not exist after `requestTimeout`, `logUnreachable` when no broker answers within that.
    package func warm(topics: [String]) async throws {
        try await core.warm(topics: topics)
    }

    /// Records handed over and not yet acknowledged.
    package var outstanding: Int { core.outstanding }

    /// How often the client was replaced after a fatal error.
    package var replacements: Int { core.replacements }

    /// Waits for the records under way, for the delivery time-out at most, fails those that are left, and frees the client.
    /// Required: a producer that is not closed keeps its thread. Closing twice is harmless.
    package func close() async {
        await core.close()
    }

    /// Breaks the client's idempotence state as a broker could.
    package func injectFatalError() { core.injectFatalError() }
}
