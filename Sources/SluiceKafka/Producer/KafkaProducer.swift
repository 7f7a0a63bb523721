package import Logging
import SluiceCore
package import SluicePorts

/// A producer of log records: idempotent, acknowledged by all in-sync replicas, in order within each partition.
///
/// It waits for a restarting broker up to the delivery timeout, without loss or duplicates. After a fatal error of librdkafka the
/// idempotence state is broken: records in flight fail with `logDelivery`, and the client is replaced. Later records use the new
/// one.
///
/// The queue is bounded by `producerRecords` and `producerBytes`. Beyond them senders wait in order, for at most the delivery
/// timeout.
package final class KafkaProducer: Sendable {
    private let core: ProducerCore

    /// Creates the client and its thread. Brokers are contacted in the background; none needs to answer yet.
    ///
    /// - Parameter trouble: The causes of failed connections, shared with other clients of the configuration.
    /// - Throws: `configInvalid` with the rejected setting.
    package init(_ configuration: KafkaConfiguration, logger: Logger, trouble: BrokerTrouble? = nil) throws {
        core = ProducerCore(
            configuration, client: try ProducerClient(configuration), logger: logger, trouble: trouble ?? BrokerTrouble(logger: logger))
        try core.start()
    }

    /// Hands a batch over and waits until every record is acknowledged.
    ///
    /// - Returns: The offset after the last record of the batch, for each partition.
    /// - Throws: The errors of `begin` and `KafkaDelivery.acknowledged`.
    package func produce(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        try await begin(batch).acknowledged()
    }

    /// Hands a batch over and waits only for room. Successive batches keep their order in each partition.
    ///
    /// The bytes are copied, so that the batch may be reused at once.
    /// - Throws: `logFull` if no room became free in time, `logDelivery` if the producer is closed.
    package func begin(_ batch: LogBatch) async throws -> KafkaDelivery {
        if batch.isEmpty { return KafkaDelivery(of: batch) }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        return core.enqueue(batch)
    }

    /// Produces a batch like `produce`.
    ///
    /// - Returns: The offset of each record, in the order of the batch.
    package func place(_ batch: LogBatch) async throws -> [Int64] {
        if batch.isEmpty { return [] }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        let delivery = core.enqueue(batch, keepsAnswers: true)
        _ = try await delivery.acknowledged()
        return delivery.answers.map { if case .stored(let offset) = $0 { offset } else { -1 } }
    }

    /// Produces a batch like `produce`, with an answer to each record.
    ///
    /// - Returns: The answers, in the order of the batch.
    /// - Throws: The errors of `begin`. In that case nothing has been sent.
    package func offer(_ batch: LogBatch) async throws -> [KafkaAnswer] {
        if batch.isEmpty { return [] }
        try await core.room(records: batch.count, bytes: batch.byteCount)
        let delivery = core.enqueue(batch, keepsAnswers: true)
        do {
            _ = try await delivery.acknowledged()
        } catch {
            // Each record has its own answer.
        }
        return delivery.answers
    }

    /// Sends one record to the partition that its key hashes to (`Partitioner`), and waits until it is acknowledged.
    ///
    /// Concurrent senders share requests. The call costs no task and no thread.
    /// - Returns: The offset of the record.
    /// - Throws: `logFull`, `logDelivery`, `logRecordTooLarge`, `logTopic`. The message states if the record may have been stored.
    package func send(topic: String, key: [UInt8], value: [UInt8]) async throws -> Int64 {
        try await core.room(records: 1, bytes: key.count + value.count)
        return try await withCheckedThrowingContinuation { continuation in
            core.enqueue(topic: topic, key: key, value: value, for: continuation)
        }
    }

    /// Looks topics up, so that the first record to each does not wait for it. An unknown topic may be new and is asked for again.
    ///
    /// - Throws: `logTopic` if one still does not exist after `requestTimeout`, `logUnreachable` if no broker answers in time.
    package func warm(topics: [String]) async throws {
        try await core.warm(topics: topics)
    }

    /// The number of single records and of batches that are in flight. A batch counts once.
    package var outstanding: Int { core.outstanding }

    /// The number of times that the client was replaced after a fatal error.
    package var replacements: Int { core.replacements }

    /// Waits for records in flight, for at most the delivery timeout, fails those that remain, and frees the client.
    ///
    /// Required, because an open producer keeps its thread. Closing twice is harmless.
    package func close() async {
        await core.close()
    }

    /// Breaks the client's idempotence state as a broker could.
    package func injectFatalError() { core.injectFatalError() }
}
