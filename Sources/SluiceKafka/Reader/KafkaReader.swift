package import Logging
import SluiceCore
package import SluicePorts

/// A reader of exactly the assigned partitions, from the given offsets, without a consumer group.
///
/// One thread polls the brokers and fills a batch of up to `readerBytes`. One consumer takes it by `next`, and a full batch stops
/// the polling. Brokers that are down are retried forever: that is a state of the batches (`connection`), never an error. Order is
/// kept within each partition.
package final class KafkaReader: Sendable {
    private let core: ReaderCore

    /// Creates the client and its thread. Nothing is read before `assign`.
    ///
    /// - Parameter trouble: The causes of failed connections, shared with other clients of the configuration.
    /// - Throws: `configInvalid` with the rejected setting.
    package init(_ configuration: KafkaConfiguration, logger: Logger, trouble: BrokerTrouble? = nil) throws {
        core = ReaderCore(configuration, logger: logger, trouble: trouble ?? BrokerTrouble(logger: logger))
        try core.start()
    }

    /// Adds partitions, moves assigned ones to the given start, and stops reading the removed ones.
    ///
    /// After it returns, `next` returns no record of a removed partition, and none of a moved one from before the move.
    /// - Throws: `logTopic` if a partition cannot be assigned (a bad name, a negative number or offset), `logUnreachable` if the
    ///   reader is closed.
    package func assign(_ starts: [LogPartition: KafkaStart], removing: Set<LogPartition> = []) async throws {
        try await core.assign(starts, removing: removing)
    }

    /// Waits until a batch is ready or `timeout` has passed, and swaps it with `batch`, whose memory is reused.
    ///
    /// The batch is empty at the timeout. The call also returns at once when the brokers go down or return. Only one consumer may
    /// wait.
    /// - Throws: `CancellationError`, `logUnreachable` if the reader is closed, `internalError` if another task waits already.
    package func next(into batch: inout KafkaFetchBatch, timeout: Duration) async throws {
        batch.removeAll()
        if try core.take(into: &batch) { return }
        try await core.wait(timeout)
        _ = try core.take(into: &batch)
    }

    /// The assigned partitions.
    package var assignment: Set<LogPartition> { core.assignment }

    /// The number of bytes that are read and not taken.
    package var waiting: Int { core.waiting }

    /// The state of the connection to the brokers.
    package var connection: KafkaConnection { core.connection }

    /// Stops reading and frees the client. A waiting `next` throws an error.
    ///
    /// Required, because an open reader keeps its thread. Closing twice is harmless.
    package func close() async { await core.close() }
}
