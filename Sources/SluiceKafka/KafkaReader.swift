package import Logging
import SluiceCore

/// Reads exactly the partitions that it is told to, from the offsets that it is told, without a consumer group.
///
/// One thread polls the brokers and fills a batch of up to `readerBytes`; one consumer takes it by `next`. When the batch
/// is full, polling stops until it is taken. Brokers that are down are tried again for ever: that is a state of the
/// batches (`connection`), never an error. Order is kept within each partition.
package final class KafkaReader: Sendable {
    private let core: ReaderCore

    /// Makes the client and its thread; nothing is read until `assign`.
    /// - Parameter trouble: where the causes of failed connections are kept, when other clients of the configuration share it.
    /// - Throws: `configInvalid` naming the setting that is refused.
    package init(_ configuration: KafkaConfiguration, logger: Logger, trouble: BrokerTrouble? = nil) throws {
        core = ReaderCore(configuration, logger: logger, trouble: trouble ?? BrokerTrouble(logger: logger))
        try core.start()
    }

    /// Adds partitions, moves those that are assigned already to the start given, and stops reading others.
    ///
    /// After it returns, `next` gives no record of a removed partition, and none of a moved one from before the move.
    /// - Throws: `logTopic` when a partition cannot be assigned (a bad name, a negative number), `logUnreachable` when the reader is closed.
    package func assign(_ starts: [KafkaPartition: KafkaStart], removing: Set<KafkaPartition> = []) async throws {
        try await core.assign(starts, removing: removing)
    }

    /// Waits until there is something to hand over, or `timeout` has passed, and swaps it with `batch`, which is emptied and reused.
    ///
    /// Returns an empty batch at the time-out, and at once when the brokers go down or come back. For one consumer at a time.
    /// - Throws: `CancellationError`, `logUnreachable` when the reader is closed, `internalError` when somebody else waits already.
    package func next(into batch: inout KafkaFetchBatch, timeout: Duration) async throws {
        batch.removeAll()
        if try core.take(into: &batch) { return }
        try await core.wait(timeout)
        _ = try core.take(into: &batch)
    }

    /// The partitions that are assigned.
    package var assignment: Set<KafkaPartition> { core.assignment }

    /// Bytes that are read and not taken.
    package var waiting: Int { core.waiting }

    /// Whether the brokers answer.
    package var connection: KafkaConnection { core.connection }

    /// Stops reading and frees the client. A waiting `next` ends with an error. Required: a reader that is not closed
    /// keeps its thread. Closing twice is harmless.
    package func close() async { await core.close() }
}
