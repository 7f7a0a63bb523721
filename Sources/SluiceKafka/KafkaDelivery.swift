package import SluiceCore
import Synchronization

/// The brokers' answer to one record.
package enum KafkaAnswer: Hashable, Sendable {
    /// Every in-sync replica has it.
    case stored(Int64)
    /// The brokers will never take it as it is.
    case refused(SluiceError)
    /// It may be sent again.
    case failed(SluiceError)
}

/// A batch on its way to the brokers.
package final class KafkaDelivery: Sendable {
    private struct Progress {
        /// Records without an answer, and one more until the whole batch is handed over.
        var remaining: Int
        var ends: [UInt64: Int64] = [:]
        /// By record, when they are kept.
        var answers: [KafkaAnswer?]
        var failure: SluiceError?
        var waiter: CheckedContinuation<[KafkaPartition: Int64], any Error>?
        var isTaken = false
    }

    let topics: [String]
    /// Of each record: the topic's index and the partition.
    private let places: [UInt64]
    private let progress: Mutex<Progress>

    init(of batch: KafkaRecordBatch, keepsAnswers: Bool = false) {
        topics = batch.topics
        places = batch.entries.map { UInt64(UInt32(bitPattern: $0.topic)) << 32 | UInt64(UInt32(bitPattern: $0.partition)) }
        progress = Mutex(Progress(remaining: batch.count, answers: keepsAnswers ? Array(repeating: nil, count: batch.count) : []))
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

    /// The end of a delivery, which its waiter is still to be told.
    struct End {
        fileprivate let waiter: Waiter?
        fileprivate let outcome: Outcome

        func tell() { waiter?.resume(with: outcome) }
    }

    /// Notes one record's answer.
    /// - Returns: nil unless it was the last.
    func note(record: Int, offset: Int64) -> End? {
        finish { state in
            guard places.indices.contains(record) else { return }
            let key = places[record]
            state.ends[key] = max(state.ends[key] ?? 0, offset + 1)
            if state.answers.indices.contains(record) { state.answers[record] = .stored(offset) }
        }
    }

    /// The answer to each record of a batch whose answers are kept. Records without one have the batch's failure.
    var answers: [KafkaAnswer] {
        let (answers, failure) = progress.withLock { ($0.answers, $0.failure) }
        let missing = failure ?? SluiceError(.logDelivery, "A record has no answer.")
        return answers.map { $0 ?? .failed(missing) }
    }

    /// Notes that a record failed.
    /// - Parameter isFinal: `true` if the brokers will never take it.
    /// - Returns: nil unless it was the last.
    func fail(_ error: SluiceError, record: Int, isFinal: Bool) -> End? {
        finish { state in
            state.failure = state.failure ?? error
            if state.answers.indices.contains(record) { state.answers[record] = isFinal ? .refused(error) : .failed(error) }
        }
    }

    /// Fails everything that is still outstanding.
    func failRest(_ error: SluiceError) {
        let outstanding = progress.withLock { $0.remaining }
        if outstanding > 0 { finish(outstanding) { $0.failure = $0.failure ?? error }?.tell() }
    }

    private func finish(_ records: Int = 1, _ change: (inout Progress) -> Void) -> End? {
        progress.withLock { state in
            change(&state)
            state.remaining = max(0, state.remaining - records)
            guard state.remaining == 0 else { return nil }
            defer { state.waiter = nil }
            return End(waiter: state.waiter, outcome: result(of: state))
        }
    }

    fileprivate typealias Waiter = CheckedContinuation<[KafkaPartition: Int64], any Error>
    fileprivate typealias Outcome = Result<[KafkaPartition: Int64], any Error>

    private func result(of state: borrowing Progress) -> Outcome {
        if let failure = state.failure { return .failure(failure) }
        var ends: [KafkaPartition: Int64] = [:]
        for (key, offset) in state.ends {
            ends[KafkaPartition(topics[Int(key >> 32)], Int32(truncatingIfNeeded: key & 0xFFFF_FFFF))] = offset
        }
        return .success(ends)
    }
}
