import CRdKafka
import SluiceCore
import SluicePorts
import Synchronization

/// The brokers' answer to one record, or the library's if the brokers give none.
struct Answer {
    var token: DeliverySlots.Token
    var partition: Int32
    var offset: Int64
    var bytes: Int
    var failure: SluiceError?
    /// `true` if the brokers will never accept the record as it is.
    var isFinal = false
    /// `true` if the record failed for lack of a connection.
    var isLate = false

    init(_ message: rd_kafka_message_t, message pointer: UnsafePointer<rd_kafka_message_t>) {
        token = unsafe DeliverySlots.Token(word: UInt64(UInt(bitPattern: message._private)))
        partition = unsafe message.partition
        offset = unsafe message.offset
        bytes = unsafe message.len + message.key_len
        guard unsafe message.err != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        let topic = unsafe message.rkt.flatMap { unsafe rd_kafka_topic_name($0) }.map { unsafe String(cString: $0) } ?? "?"
        // Without an acknowledgement a record may still be stored.
        let mayBeStored = unsafe rd_kafka_message_status(pointer) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED
        isLate = unsafe message.err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || isUnreachable(message.err)
        isFinal = unsafe Self.isFinal(message.err)
        failure = unsafe Self.error(
            message.err, partition: LogPartition(topic, message.partition), bytes: bytes, mayBeStored: mayBeStored)
    }

    init(_ refusal: UndeliverableRecord) {
        token = refusal.token
        partition = refusal.partition
        offset = -1
        bytes = refusal.bytes
        isFinal = Self.isFinal(refusal.error)
        failure = Self.error(
            refusal.error, partition: LogPartition(refusal.topic, refusal.partition), bytes: refusal.bytes, mayBeStored: false)
    }

    /// Returns `true` if an error concerns the record itself, so that sending it again fails again.
    static func isFinal(_ error: rd_kafka_resp_err_t) -> Bool { isTooLarge(error) || error == RD_KAFKA_RESP_ERR_INVALID_RECORD }

    private static func isTooLarge(_ error: rd_kafka_resp_err_t) -> Bool {
        error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE
            || error == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE
    }

    static func error(_ error: rd_kafka_resp_err_t, partition: LogPartition, bytes: Int, mayBeStored: Bool) -> SluiceError {
        let place = partition.partition < 0 ? partition.topic : "\(partition)"
        if isMissingTopic(error) { return SluiceError(.logTopic, "A record for \(place) was not stored.", cause: cause(of: error)) }
        if isTooLarge(error) {
            return SluiceError(.logRecordTooLarge, "A record of \(bytes) bytes for \(place) is too large.", cause: cause(of: error))
        }
        if let denial = KafkaOperation.write.denial(error, topic: partition.topic) { return denial }
        if error == RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS || error == RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND {
            return replicaShortage(topic: partition.topic, partition: partition.partition < 0 ? nil : partition.partition)
        }
        let state = mayBeStored ? "; it may have been stored" : ""
        let fix = "Read the broker's error, then write the record again."
        return SluiceError(.logDelivery, "A record for \(place) was not acknowledged\(state).", fix: fix, cause: cause(of: error))
    }
}

extension ProducerCore {
    private enum Settled {
        case stored(CheckedContinuation<Int64, any Error>, Int64)
        case failed(CheckedContinuation<Int64, any Error>, SluiceError)
    }

    func settle(_ refusals: [UndeliverableRecord]) {
        guard !refusals.isEmpty else { return }
        settle(refusals.map(Answer.init(_:)))
    }

    /// Passes every answer to its owner and releases the room. Waiters resume outside of the lock.
    func settle(_ answers: [Answer]) {
        var batches: [(Answer, KafkaDelivery)] = []
        let (settled, admitted) = shared.withLock { state -> ([Settled], [ProducerRoom.Waiter]) in
            var settled: [Settled] = []
            var bytes = 0
            var records = 0
            for answer in answers {
                // An answer after its slot's release has neither an owner nor room to release.
                guard let owner = state.slots[answer.token] else { continue }
                records += 1
                bytes += answer.bytes
                switch owner {
                case .batch(let delivery): batches.append((answer, delivery))
                case .record(let continuation):
                    state.slots.remove(answer.token)
                    settled.append(answer.failure.map { .failed(continuation, $0) } ?? .stored(continuation, answer.offset))
                }
            }
            return (settled, state.room.release(records: records, bytes: bytes))
        }
        for (answer, delivery) in batches { pass(answer, to: delivery) }
        for one in settled {
            switch one {
            case .stored(let continuation, let offset): continuation.resume(returning: offset)
            case .failed(let continuation, let error): continuation.resume(throwing: error)
            }
        }
        for waiter in admitted { waiter.continuation.resume() }
    }

    private func pass(_ answer: Answer, to delivery: KafkaDelivery) {
        let end: KafkaDelivery.End?
        if let failure = answer.failure {
            end = delivery.fail(failure, record: answer.token.record, isFinal: answer.isFinal)
        } else {
            end = delivery.note(record: answer.token.record, offset: answer.offset)
        }
        guard let end else { return }
        // The slot is released first, so that nothing is outstanding when the waiter continues.
        shared.withLock { _ = $0.slots.remove(answer.token) }
        end.tell()
    }
}
