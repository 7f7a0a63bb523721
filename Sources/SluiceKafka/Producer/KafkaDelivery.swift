package import SluiceCore
package import SluicePorts
import Synchronization

/// The brokers' answer to one record.
package enum KafkaAnswer: Hashable, Sendable {
    /// All in-sync replicas have stored the record at this offset.
    case stored(Int64)
    /// The brokers will never accept the record as it is.
    case refused(SluiceError)
    /// The record was not acknowledged and may be sent again.
    case failed(SluiceError)
}

/// A batch on its way to the brokers.
package final class KafkaDelivery: Sendable {
    private struct Progress {
        /// The number of records without an answer.
        var remaining: Int
        /// The offset after the last stored record, by topic index and partition.
        var ends: [UInt64: Int64] = [:]
        /// The answer to each record, if answers are kept; otherwise empty.
        var answers: [KafkaAnswer?]
        var failure: SluiceError?
        var waiter: CheckedContinuation<[LogPartition: Int64], any Error>?
        var isTaken = false
    }

    let topics: [String]
    /// The topic index and the partition of each record, in one word.
    private let places: [UInt64]
    private let progress: Mutex<Progress>

    init(of batch: LogBatch, keepsAnswers: Bool = false) {
        topics = batch.topics
        places = batch.entries.map { UInt64(UInt32(bitPattern: $0.topic)) << 32 | UInt64(UInt32(bitPattern: $0.partition)) }
        progress = Mutex(Progress(remaining: batch.count, answers: keepsAnswers ? Array(repeating: nil, count: batch.count) : []))
    }

    /// Waits until all in-sync replicas have acknowledged every record, or records have failed.
    ///
    /// The wait ends within the delivery timeout of the configuration. Cancelling the task does not end it, because the records are
    /// in flight. Call it once.
    /// - Returns: The offset after the last record of the batch, for each partition.
    /// - Throws: The error of the first record that failed: `logDelivery`, `logRecordTooLarge`, `logTopic`, `logReplicas` or
    ///   `logNotAuthorized`. Other records of the batch may have been stored.
    package func acknowledged() async throws -> [LogPartition: Int64] {
        try await withCheckedThrowingContinuation { continuation in
            let outcome: Result<[LogPartition: Int64], any Error>? = progress.withLock { state in
                guard !state.isTaken else {
                    return .failure(
                        SluiceError(.internalError, "Two tasks waited for one delivery.", fix: "Wait once and keep the result."))
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

    /// The end of a delivery, whose waiter has not been resumed yet.
    struct End {
        fileprivate let waiter: Waiter?
        fileprivate let outcome: Outcome

        func tell() { waiter?.resume(with: outcome) }
    }

    /// Records the offset of a stored record.
    ///
    /// - Returns: The end of the delivery; nil unless this was its last record.
    func note(record: Int, offset: Int64) -> End? {
        finish { state in
            guard places.indices.contains(record) else { return }
            let key = places[record]
            // The end is the greatest offset, for any order of the answers.
            state.ends[key] = max(state.ends[key] ?? 0, offset + 1)
            if state.answers.indices.contains(record) { state.answers[record] = .stored(offset) }
        }
    }

    /// The answer to each record of a batch whose answers are kept. A record without one has the batch's failure.
    var answers: [KafkaAnswer] {
        let (answers, failure) = progress.withLock { ($0.answers, $0.failure) }
        let missing = failure ?? SluiceError(.logDelivery, "A record has no answer.")
        return answers.map { $0 ?? .failed(missing) }
    }

    /// Records the failure of a record.
    ///
    /// - Parameter isFinal: `true` if the brokers will never accept it.
    /// - Returns: The end of the delivery; nil unless this was its last record.
    func fail(_ error: SluiceError, record: Int, isFinal: Bool) -> End? {
        finish { state in
            state.failure = state.failure ?? error
            if state.answers.indices.contains(record) { state.answers[record] = isFinal ? .refused(error) : .failed(error) }
        }
    }

    /// Fails all records that are still outstanding.
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

    fileprivate typealias Waiter = CheckedContinuation<[LogPartition: Int64], any Error>
    fileprivate typealias Outcome = Result<[LogPartition: Int64], any Error>

    private func result(of state: borrowing Progress) -> Outcome {
        if let failure = state.failure { return .failure(failure) }
        var ends: [LogPartition: Int64] = [:]
        for (key, offset) in state.ends {
            ends[LogPartition(topics[Int(key >> 32)], Int32(truncatingIfNeeded: key & 0xFFFF_FFFF))] = offset
        }
        return .success(ends)
    }
}
