import SluiceCore
import Synchronization

/// A batch on its way to the brokers.
package final class KafkaDelivery: Sendable {
    private struct Progress {
        /// Records without an answer, and one more until the whole batch is handed over.
        var remaining: Int
        var ends: [UInt64: Int64] = [:]
        /// Every offset of a partition, when they are kept.
        var offsets: [UInt64: [Int64]] = [:]
        var failure: SluiceError?
        var waiter: CheckedContinuation<[KafkaPartition: Int64], any Error>?
        var isTaken = false
    }

    let topics: [String]
    private let keepsOffsets: Bool
    private let progress: Mutex<Progress>

    init(topics: [String], records: Int, keepsOffsets: Bool = false) {
        self.topics = topics
        self.keepsOffsets = keepsOffsets
        progress = Mutex(Progress(remaining: records))
    }

    /// Waits until every record is acknowledged by all in-sync replicas, or has failed.
    ///
    /// The wait ends within the delivery time-out of the configuration; it does not end early when the task is
    /// cancelled, since the records are on their way. Call it once.
    /// - Returns: for each partition, the offset after the last record of the batch.
    /// - Throws: `logDelivery`, `logRecordTooLarge` or `logTopic` with the first record that failed. Others of the batch may have been stored.
    package func acknowledged() async throws -> [KafkaPartition: Int64] {
        try await withCheckedThrowingContinuation { continuation in
            let outcome: Result<[KafkaPartition: Int64], any Error>? = progress.withLock { state in
                guard !state.isTaken else {
                    return .failure(SluiceError(.internalError, "A delivery was waited for twice.", fix: "Wait once and keep the result."))
                }
                state.isTaken = true
                guard state.remaining == 0 else {
                    state.waiter = continuation
                    return nil
                }
                return result(of: state)
            }
            if let outcome { continuation.resume(with: outcome) }
        }
    }

    /// Notes one record's answer.
    /// - Returns: whether it was the last.
    func note(topic: Int, partition: Int32, offset: Int64) -> Bool {
        finish { state in
            let key = UInt64(topic) << 32 | UInt64(UInt32(bitPattern: partition))
            state.ends[key] = max(state.ends[key] ?? 0, offset + 1)
            if keepsOffsets { state.offsets[key, default: []].append(offset) }
        }
    }

    /// The offset of each record of an acknowledged batch whose offsets are kept. An idempotent producer keeps the order of
    /// each partition, so its n-th record of the batch has the n-th of its offsets.
    func offsets(of batch: KafkaRecordBatch) -> [Int64] {
        var byPartition = progress.withLock { $0.offsets }.mapValues { $0.sorted(by: >) }
        return batch.entries.map { entry in
            byPartition[UInt64(UInt32(bitPattern: entry.topic)) << 32 | UInt64(UInt32(bitPattern: entry.partition))]?.popLast() ?? -1
        }
    }

    /// Notes that records failed.
    /// - Returns: whether nothing is outstanding any more.
    func fail(_ error: SluiceError, records: Int = 1) -> Bool {
        finish(records) { $0.failure = $0.failure ?? error }
    }

    /// Fails everything that is still outstanding.
    func failRest(_ error: SluiceError) {
        let outstanding = progress.withLock { $0.remaining }
        if outstanding > 0 { _ = fail(error, records: outstanding) }
    }

    private func finish(_ records: Int = 1, _ change: (inout Progress) -> Void) -> Bool {
        let (isLast, waiter, outcome) = progress.withLock { state in
            change(&state)
            state.remaining = max(0, state.remaining - records)
            guard state.remaining == 0 else { return (false, Waiter?.none, Outcome?.none) }
            defer { state.waiter = nil }
            return (true, state.waiter, result(of: state))
        }
        if let waiter, let outcome { waiter.resume(with: outcome) }
        return isLast
    }

    private typealias Waiter = CheckedContinuation<[KafkaPartition: Int64], any Error>
    private typealias Outcome = Result<[KafkaPartition: Int64], any Error>

    private func result(of state: borrowing Progress) -> Outcome {
        if let failure = state.failure { return .failure(failure) }
        var ends: [KafkaPartition: Int64] = [:]
        for (key, offset) in state.ends {
            ends[KafkaPartition(topics[Int(key >> 32)], Int32(truncatingIfNeeded: key & 0xFFFF_FFFF))] = offset
        }
        return .success(ends)
    }
}
