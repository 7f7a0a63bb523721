import CRdKafka
import Logging
import SluiceCore
import Synchronization

/// The polling thread's side of a producer: answers, timeouts, replacement and the end.
extension ProducerCore {
    /// The milliseconds between two checks of the waiters' deadlines, if no event arrives.
    private static let pollMilliseconds: Int32 = 100
    /// The milliseconds for which the records in flight of a broken client are awaited.
    private static let drainMilliseconds: UInt64 = 2_000

    /// Starts the thread, which retains this object until `close`.
    func start() throws {
        try ClientThread.start(name: "kafka-producer") { self.run() }
    }

    private func run() {
        while let client = nextClient() {
            let isBroken = serve(client, milliseconds: Self.pollMilliseconds)
            expireWaiters()
            if isBroken { replace(client) }
        }
    }

    /// Returns the client to poll. If the producer is closed, it frees everything and returns nil.
    private func nextClient() -> ProducerClient? {
        let (client, isOver) = shared.withLock { state -> (ProducerClient?, Bool) in
            switch state.phase {
            case .running(let client): return (client, false)
            case .closing(let client, let deadline):
                return (client, state.slots.count == 0 || clock.monotonicNanoseconds() >= deadline)
            case .closed: return (nil, true)
            }
        }
        guard isOver else { return client }
        if let client {
            // The rest in flight is purged before its owners fail.
            drain(client, milliseconds: 0)
            end(Self.closedError)
        }
        return nil
    }

    /// Waits for one event and handles it.
    ///
    /// - Returns: `true` if the client is permanently broken.
    private func serve(_ client: ProducerClient, milliseconds: Int32) -> Bool {
        guard let event = unsafe rd_kafka_queue_poll(client.queue.raw, milliseconds) else { return false }
        defer { unsafe rd_kafka_event_destroy(event) }
        switch unsafe rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_DR: unsafe takeAnswers(event)
        case RD_KAFKA_EVENT_LOG: unsafe forward(logEvent: event, to: logger)
        case RD_KAFKA_EVENT_ERROR:
            let error = unsafe rd_kafka_event_error(event)
            let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) } ?? text(of: error)
            logger.debug("kafka producer error", metadata: ["error": "\(words)"])
            unsafe trouble.note(errorEvent: event)
            return unsafe rd_kafka_event_error_is_fatal(event) != 0 || error == RD_KAFKA_RESP_ERR__FATAL
        default: break
        }
        return false
    }

    /// Handles the answers of one event under one lock. Waiters resume after it.
    private func takeAnswers(_ event: OpaquePointer) {
        let count = unsafe rd_kafka_event_message_count(event)
        var answers: [Answer] = []
        answers.reserveCapacity(count)
        while let message = unsafe rd_kafka_event_message_next(event) {
            answers.append(unsafe Answer(message.pointee, message: message))
        }
        // One acknowledgement proves a working connection. Otherwise late records carry the known cause.
        if answers.contains(where: { $0.failure == nil }) {
            trouble.clear()
        } else if trouble.words != nil {
            for index in answers.indices where answers[index].isLate {
                answers[index].failure = answers[index].failure.map(trouble.explain)
            }
        }
        settle(answers)
    }

    /// Serves records in flight for the given time, then purges the rest.
    private func drain(_ client: ProducerClient, milliseconds: UInt64) {
        let deadline = clock.monotonicNanoseconds() + milliseconds * 1_000_000
        while unsafe rd_kafka_outq_len(client.handle.raw) > 0, clock.monotonicNanoseconds() < deadline {
            _ = serve(client, milliseconds: 20)
        }
        guard unsafe rd_kafka_outq_len(client.handle.raw) > 0 else { return }
        // Purged records are answered as well; a short wait collects those answers.
        unsafe rd_kafka_purge(client.handle.raw, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
        let end = clock.monotonicNanoseconds() + Self.drainMilliseconds * 1_000_000
        while unsafe rd_kafka_outq_len(client.handle.raw) > 0, clock.monotonicNanoseconds() < end {
            _ = serve(client, milliseconds: 20)
        }
    }

    /// Replaces a client that has had a fatal error.
    private func replace(_ broken: ProducerClient) {
        var reason = "no reason given"
        if let words = unsafe withErrorText({ unsafe rd_kafka_fatal_error(broken.handle.raw, $0, $1) == RD_KAFKA_RESP_ERR_NO_ERROR }) {
            reason = words
        }
        logger.warning("kafka producer replaced after a fatal error", metadata: ["error": "\(reason)"])
        // With the room closed, new senders wait instead of reaching the broken client.
        let isClosing = shared.withLock { state in
            if case .closing = state.phase { return true }
            state.phase = .running(nil)
            state.room.isClosed = true
            return false
        }
        drain(broken, milliseconds: Self.drainMilliseconds)
        let fatal = unsafe rd_kafka_fatal_error(broken.handle.raw, nil, 0)
        let lost =
            KafkaOperation.write.denial(fatal, topic: nil)
            ?? SluiceError(
                .logDelivery, "The Kafka producer failed with records in flight, which may have been stored.",
                cause: cause(of: fatal, reason))
        // Answers that still arrive find no owner.
        let owners = shared.withLock { $0.slots.removeAll() }
        for owner in owners { owner.fail(lost) }
        guard !isClosing else { return }
        do {
            let client = try ProducerClient(configuration)
            let waiters = shared.withLock { state in
                state.replacements += 1
                state.room = state.room.emptied()
                // A `close` during the replacement ends the new client at once.
                state.phase = state.closers.isEmpty ? .running(client) : .closing(client, deadline: 0)
                return state.room.admit()
            }
            for waiter in waiters { waiter.continuation.resume() }
        } catch {
            end(SluiceError(error, otherwise: .logDelivery, "No Kafka producer could be created."))
        }
    }

    /// Fails the waiters whose deadline has passed with `logFull`.
    private func expireWaiters() {
        let now = clock.monotonicNanoseconds()
        let expired = shared.withLock { $0.room.expire(now: now) }
        guard !expired.isEmpty else { return }
        let limit = "\(configuration.producerRecords) records, \(configuration.producerBytes) bytes"
        let error = SluiceError(
            .logFull,
            "The queue to \(configuration.bootstrapServers) stayed full (\(limit)) for \(configuration.deliveryTimeout).",
            fix: "Check that the brokers are up and keep pace."
        )
        for waiter in expired { waiter.continuation.resume(throwing: error) }
    }

    /// Closes permanently. No caller is left waiting.
    private func end(_ error: SluiceError) {
        let (owners, waiters, closers) = shared.withLock { state in
            state.phase = .closed(error)
            defer { state.closers = [] }
            return (state.slots.removeAll(), state.room.expire(now: .max), state.closers)
        }
        for owner in owners { owner.fail(error) }
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
        for closer in closers { closer.resume() }
    }
}

extension DeliverySlots.Owner {
    func fail(_ error: SluiceError) {
        switch self {
        case .record(let continuation): continuation.resume(throwing: error)
        case .batch(let delivery): delivery.failRest(error)
        }
    }
}
