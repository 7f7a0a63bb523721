import CRdKafka
import Logging
import SluiceCore
import SluicePorts
import Synchronization

/// The shared half of a producer: the state that senders and the polling thread use. `ProducerCore+Thread` is the thread's side.
final class ProducerCore: Sendable {
    enum Phase {
        /// The client is nil while it is being replaced.
        case running(ProducerClient?)
        /// Until the records in flight are answered, or until the deadline (monotonic nanoseconds).
        case closing(ProducerClient, deadline: UInt64)
        case closed(SluiceError)
    }

    struct Shared {
        var phase: Phase
        var room: ProducerRoom
        var slots = DeliverySlots()
        var closers: [CheckedContinuation<Void, Never>] = []
        var replacements = 0
    }

    static let closedError = SluiceError(.logDelivery, "The Kafka producer is closed.", fix: "Send before closing it.")

    let configuration: KafkaConfiguration
    let logger: Logger
    let trouble: BrokerTrouble
    let clock = SystemEnvironment()
    let shared: Mutex<Shared>
    private let lookups = BlockingQueue(label: "sluice.kafka.lookups")

    init(_ configuration: KafkaConfiguration, client: ProducerClient, logger: Logger, trouble: BrokerTrouble) {
        self.configuration = configuration
        self.logger = logger
        self.trouble = trouble
        let room = ProducerRoom(recordLimit: configuration.producerRecords, byteLimit: configuration.producerBytes)
        shared = Mutex(Shared(phase: .running(client), room: room))
    }

    var outstanding: Int { shared.withLock { $0.slots.count } }
    var replacements: Int { shared.withLock { $0.replacements } }

    /// Claims room for records, and waits if none is free.
    ///
    /// - Throws: `logFull` after the delivery timeout, `logDelivery` if the producer is closed.
    func room(records: Int, bytes: Int) async throws {
        if try shared.withLock({ try claim(&$0, records: records, bytes: bytes) }) { return }
        let deadline = clock.monotonicNanoseconds() + configuration.deliveryTimeout.nanoseconds
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Room may have become free since the first try, so it is claimed again under the lock that registers the waiter.
            let outcome = Result<Bool, any Error> {
                try shared.withLock { state in
                    if try claim(&state, records: records, bytes: bytes) { return true }
                    state.room.wait(.init(records: records, bytes: bytes, deadline: deadline, continuation: continuation))
                    return false
                }
            }
            switch outcome {
            case .success(true): continuation.resume()
            case .success(false): break
            case .failure(let error): continuation.resume(throwing: error)
            }
        }
    }

    private func claim(_ state: inout Shared, records: Int, bytes: Int) throws -> Bool {
        switch state.phase {
        case .running: return state.room.claim(records: records, bytes: bytes)
        case .closing: throw Self.closedError
        case .closed(let error): throw error
        }
    }

    /// Hands one record over. Its room must have been claimed.
    func enqueue(topic: String, key: [UInt8], value: [UInt8], for continuation: CheckedContinuation<Int64, any Error>) {
        // The slot must exist before the record is handed over, because the answer may arrive at once.
        let (token, client) = shared.withLock { ($0.slots.insert(.record(continuation)), $0.phase.client) }
        if let client {
            if let refusal = client.produce(topic: topic, key: key, value: value, token: token) { settle([refusal]) }
        } else {
            // The client is being replaced, so the record fails at once.
            let bytes = key.count + value.count
            settle([UndeliverableRecord(token: token, error: RD_KAFKA_RESP_ERR__DESTROY, bytes: bytes, topic: topic, partition: -1)])
        }
    }

    /// Hands a batch over. Its room must have been claimed.
    func enqueue(_ batch: LogBatch, keepsAnswers: Bool = false) -> KafkaDelivery {
        let delivery = KafkaDelivery(of: batch, keepsAnswers: keepsAnswers)
        let (token, client) = shared.withLock { ($0.slots.insert(.batch(delivery)), $0.phase.client) }
        if let client {
            settle(client.produce(batch, token: token))
        } else {
            settle(
                batch.entries.enumerated().map { index, entry in
                    let topic = batch.topics[Int(entry.topic)]
                    return UndeliverableRecord(entry, token: token.with(record: index), error: RD_KAFKA_RESP_ERR__DESTROY, topic: topic)
                }
            )
        }
        return delivery
    }

    func warm(topics: [String]) async throws {
        guard let client = shared.withLock({ $0.phase.client }) else { throw Self.closedError }
        try await lookups.run { [configuration, trouble] in
            do {
                for name in topics {
                    guard let topic = client.topic(name) else { throw TopicMetadata.badName(name) }
                    _ = try TopicDelay.waitOut(isExpected: true, configuration) {
                        try TopicMetadata.partitions(of: name, topic: topic, client: client.handle, configuration: configuration)
                    }
                }
            } catch let error as SluiceError where error.code == .logUnreachable {
                throw trouble.explain(error)
            }
        }
    }

    func injectFatalError() {
        guard let client = shared.withLock({ $0.phase.client }) else { return }
        unsafe rd_kafka_test_fatal_error(client.handle.raw, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "injected")
    }

    /// Begins to close, and waits until the thread has ended.
    func close() async {
        await withCheckedContinuation { continuation in
            let (isClosed, client) = shared.withLock { state -> (Bool, ProducerClient?) in
                if case .closed = state.phase { return (true, nil) }
                state.closers.append(continuation)
                // While the client is being replaced, `replace` finds the closer and closes the new client.
                if case .running(let client?) = state.phase {
                    let deadline = clock.monotonicNanoseconds() + configuration.deliveryTimeout.nanoseconds
                    state.phase = .closing(client, deadline: deadline)
                }
                return (false, state.phase.client)
            }
            if isClosed { return continuation.resume() }
            client?.wake()
        }
    }
}

extension ProducerCore.Phase {
    var client: ProducerClient? {
        switch self {
        case .running(let client): client
        case .closing(let client, _): client
        case .closed: nil
        }
    }
}
