import CRdKafka
import SluiceCore
import SluicePorts
import Synchronization

/// A librdkafka producer with its event queue and topics. When its last user releases it, they are freed in reverse order.
///
/// Usually that is the polling thread. A sender inside a call keeps the client until it returns.
final class ProducerClient: Sendable {
    let handle: KafkaPointer
    let queue: KafkaPointer
    private let topics = Mutex<[String: KafkaPointer]>([:])

    init(_ configuration: KafkaConfiguration) throws {
        handle = try configuration.makeClient(.producer, events: RD_KAFKA_EVENT_DR)
        queue = unsafe KafkaPointer(rd_kafka_queue_get_main(handle.raw))
    }

    deinit {
        topics.withLock { $0.values.forEach { unsafe rd_kafka_topic_destroy($0.raw) } }
        unsafe rd_kafka_queue_destroy(queue.raw)
        unsafe rd_kafka_destroy(handle.raw)
    }

    /// Wakes the thread that waits on `queue`.
    func wake() { unsafe rd_kafka_queue_yield(queue.raw) }

    func topic(_ name: String) -> KafkaPointer? {
        topics.withLock { topics in
            if let known = topics[name] { return known }
            guard let topic = unsafe rd_kafka_topic_new(handle.raw, name, nil) else { return nil }
            let pointer = unsafe KafkaPointer(topic)
            topics[name] = pointer
            return pointer
        }
    }

    /// Hands one record over, to the partition that its key hashes to.
    ///
    /// - Returns: Nil if the library accepted it.
    func produce(topic name: String, key: [UInt8], value: [UInt8], token: DeliverySlots.Token) -> UndeliverableRecord? {
        let bytes = key.count + value.count
        guard let topic = topic(name) else {
            return UndeliverableRecord(token: token, error: rd_kafka_last_error(), bytes: bytes, topic: name, partition: -1)
        }
        let result = unsafe key.withUnsafeBytes { key in
            unsafe value.withUnsafeBytes { value in
                unsafe rd_kafka_produce(
                    topic.raw, -1, RD_KAFKA_MSG_F_COPY, UnsafeMutableRawPointer(mutating: value.baseAddress), value.count,
                    key.baseAddress, key.count, UnsafeMutableRawPointer(bitPattern: UInt(token.word))
                )
            }
        }
        guard result != 0 else { return nil }
        return UndeliverableRecord(token: token, error: rd_kafka_last_error(), bytes: bytes, topic: name, partition: -1)
    }

    /// Hands a batch over, with one call for each run of entries of one topic, so that the order of entries is kept.
    ///
    /// - Returns: The records that the library rejected.
    func produce(_ batch: LogBatch, token: DeliverySlots.Token) -> [UndeliverableRecord] {
        var refusals: [UndeliverableRecord] = []
        var start = 0
        while start < batch.count {
            let index = batch.entries[start].topic
            let end = batch.entries[start...].firstIndex { $0.topic != index } ?? batch.count
            let name = batch.topics[Int(index)]
            let run = batch.entries[start..<end]
            if let topic = topic(name), let content = batch.contentType {
                refusals += produce(run, of: batch, topic: topic, name: name, content: content, token: token)
            } else if let topic = topic(name) {
                refusals += produce(run, of: batch, topic: topic, name: name, token: token)
            } else {
                let error = rd_kafka_last_error()
                refusals += run.indices.map { UndeliverableRecord(run[$0], token: token.with(record: $0), error: error, topic: name) }
            }
            start = end
        }
        return refusals
    }

    private func produce(
        _ run: ArraySlice<LogBatch.Entry>, of batch: LogBatch, topic: KafkaPointer, name: String, token: DeliverySlots.Token
    ) -> [UndeliverableRecord] {
        unsafe batch.arena.withUnsafeBytes { arena in
            unsafe withUnsafeTemporaryAllocation(of: rd_kafka_message_t.self, capacity: run.count) { messages in
                for (index, entry) in run.enumerated() {
                    let token = token.with(record: run.startIndex + index)
                    unsafe messages.initializeElement(at: index, to: message(entry, in: arena, token: token))
                }
                let flags = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_PARTITION
                let taken = unsafe rd_kafka_produce_batch(topic.raw, 0, flags, messages.baseAddress, Int32(run.count))
                // For a record of a missing partition librdkafka 2.0.2 keeps the memory, and counts it as in flight until the
                // client is freed. Closing then takes the drain's time longer.
                guard Int(taken) < run.count else { return [] }
                return run.enumerated().compactMap { index, entry in
                    let error = unsafe messages[index].err
                    let token = token.with(record: run.startIndex + index)
                    return error == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : UndeliverableRecord(entry, token: token, error: error, topic: name)
                }
            }
        }
    }

    /// Hands records with a content type over, one by one: the library's call for many takes no headers.
    private func produce(
        _ run: ArraySlice<LogBatch.Entry>, of batch: LogBatch, topic: KafkaPointer, name: String, content: RecordContent,
        token: DeliverySlots.Token
    ) -> [UndeliverableRecord] {
        unsafe batch.arena.withUnsafeBytes { arena in
            run.indices.compactMap { index in
                let token = token.with(record: index)
                var message = unsafe message(run[index], in: arena, token: token)
                let error = unsafe sluice_kafka_produce(handle.raw, topic.raw, &message, content.rawValue)
                return error == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : UndeliverableRecord(run[index], token: token, error: error, topic: name)
            }
        }
    }

    private func message(
        _ entry: LogBatch.Entry, in arena: UnsafeRawBufferPointer, token: DeliverySlots.Token
    ) -> rd_kafka_message_t {
        var message = unsafe rd_kafka_message_t()
        unsafe message.partition = entry.partition
        unsafe message.payload = UnsafeMutableRawPointer(mutating: arena.baseAddress.map { unsafe $0 + entry.value.lowerBound })
        unsafe message.len = entry.value.count
        unsafe message.key = UnsafeMutableRawPointer(mutating: arena.baseAddress.map { unsafe $0 + entry.key.lowerBound })
        unsafe message.key_len = entry.key.count
        unsafe message._private = UnsafeMutableRawPointer(bitPattern: UInt(token.word))
        return unsafe message
    }
}

/// A record that the library did not accept.
struct UndeliverableRecord {
    var token: DeliverySlots.Token
    var error: rd_kafka_resp_err_t
    var bytes: Int
    var topic: String
    var partition: Int32

    init(token: DeliverySlots.Token, error: rd_kafka_resp_err_t, bytes: Int, topic: String, partition: Int32) {
        self.token = token
        self.error = error
        self.bytes = bytes
        self.topic = topic
        self.partition = partition
    }

    init(_ entry: LogBatch.Entry, token: DeliverySlots.Token, error: rd_kafka_resp_err_t, topic: String) {
        self.init(token: token, error: error, bytes: entry.byteCount, topic: topic, partition: entry.partition)
    }
}
