import CRdKafka
import Dispatch
import Logging
import SluiceCore
import SluicePorts
import Synchronization

/// A reader's client and its dependent objects. Only the polling thread uses them; `free` releases them in reverse order.
struct ReaderClient {
    let handle: KafkaPointer
    /// The queue of all partitions' records.
    let queue: KafkaPointer
    /// The queue of the client's errors and log lines.
    let events: KafkaPointer
    /// The topics, by the same index as in the batches.
    var topics: [KafkaPointer] = []
    var indices: [String: Int32] = [:]
    var started: Set<LogPartition> = []
    var nextProbe: UInt64 = 0

    init(_ configuration: KafkaConfiguration) throws {
        handle = try configuration.makeClient(.reader)
        queue = unsafe KafkaPointer(rd_kafka_queue_new(handle.raw))
        events = unsafe KafkaPointer(rd_kafka_queue_get_main(handle.raw))
    }

    mutating func index(of topic: String) -> Int32? {
        if let known = indices[topic] { return known }
        guard let pointer = unsafe rd_kafka_topic_new(handle.raw, topic, nil) else { return nil }
        unsafe topics.append(KafkaPointer(pointer))
        let index = Int32(topics.count - 1)
        indices[topic] = index
        return index
    }

    mutating func stop(_ partition: LogPartition) {
        guard started.remove(partition) != nil, let index = indices[partition.topic] else { return }
        unsafe rd_kafka_consume_stop(topics[Int(index)].raw, partition.partition)
    }

    mutating func free() {
        for partition in started { stop(partition) }
        for topic in topics { unsafe rd_kafka_topic_destroy(topic.raw) }
        unsafe rd_kafka_queue_destroy(events.raw)
        unsafe rd_kafka_queue_destroy(queue.raw)
        unsafe rd_kafka_destroy(handle.raw)
    }
}

extension ReaderCore {
    /// The maximum sleep of the thread if nothing happens, in milliseconds.
    private static let idleMilliseconds: UInt64 = 100
    /// The maximum number of records taken from the library at a time.
    private static let chunk = 1_024

    /// Creates the client and starts the thread, which owns the client until `close`.
    func start() throws {
        let client = Mutex(try ReaderClient(configuration))
        let box = ReaderClientBox(client)
        shared.withLock { $0.queue = box.client.withLock { $0.queue } }
        do {
            try ClientThread.start(name: "kafka-reader") { box.client.withLock { self.run(&$0) } }
        } catch {
            shared.withLock { $0.queue = nil }
            box.client.withLock { $0.free() }
            throw error
        }
    }

    private func run(_ client: inout ReaderClient) {
        while true {
            let (commands, isClosing, isFull) = shared.withLock { state in
                defer { state.commands = [] }
                return (state.commands, state.isClosing, state.ready.bytes.count >= configuration.readerBytes)
            }
            // Before the check for closing, so that each accepted command is answered.
            for command in commands { apply(command, to: &client) }
            if isClosing { return end(&client) }
            serveEvents(client)
            let until = sleepDeadline()
            // Backpressure: a full batch stops the polling until the consumer takes it.
            if isFull {
                _ = room.wait(timeout: .now() + .nanoseconds(nanosecondsLeft(until)))
            } else {
                poll(&client, milliseconds: Int32((nanosecondsLeft(until) + 999_999) / 1_000_000))
            }
            probe(&client)
            resumeWaiter()
        }
    }

    /// Returns the time until which the thread may sleep, in monotonic nanoseconds: the waiter's deadline if that is soon.
    private func sleepDeadline() -> UInt64 {
        let idle = clock.monotonicNanoseconds() + Self.idleMilliseconds * 1_000_000
        return shared.withLock { state in
            let deadline = min(idle, state.waiter?.deadline ?? .max)
            // A command that arrived after the loop's check must not wait for the sleep to end.
            state.sleepsUntil = state.commands.isEmpty && !state.isClosing ? deadline : 0
            return state.sleepsUntil
        }
    }

    private func nanosecondsLeft(_ deadline: UInt64) -> Int {
        let now = clock.monotonicNanoseconds()
        return deadline > now ? Int(deadline - now) : 0
    }

    // MARK: Records

    /// Waits for one record, then takes the others that are ready.
    ///
    /// The library's batch call alone would wait until the whole chunk is full.
    private func poll(_ client: inout ReaderClient, milliseconds: Int32) {
        guard let first = unsafe rd_kafka_consume_queue(client.queue.raw, milliseconds) else { return }
        unsafe withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<rd_kafka_message_t>?.self, capacity: Self.chunk) { messages in
            unsafe messages.initialize(repeating: nil)
            unsafe messages[0] = first
            var count = 1
            if let rest = messages.baseAddress {
                count += unsafe max(0, rd_kafka_consume_batch_queue(client.queue.raw, 0, rest + 1, Self.chunk - 1))
            }
            // The records are copied, as librdkafka owns the messages, which are destroyed below.
            let errors = unsafe store(UnsafeMutableBufferPointer(rebasing: messages[..<count]), indices: client.indices)
            // A record proves that a broker answers.
            if errors.count < count { trouble.clear() }
            for error in errors { note(error, client: &client) }
            for index in 0..<count { unsafe rd_kafka_message_destroy(messages[index]) }
        }
    }

    struct PartitionError {
        var partition: LogPartition
        var error: rd_kafka_resp_err_t
        var words: String
        var offset: Int64
    }

    private func store(
        _ messages: UnsafeMutableBufferPointer<UnsafeMutablePointer<rd_kafka_message_t>?>, indices: [String: Int32]
    ) -> [PartitionError] {
        shared.withLock { state in
            var errors: [PartitionError] = []
            // Consecutive records often share a topic, which is looked up once for them.
            var lastTopic: (pointer: OpaquePointer?, name: String, index: Int32) = (nil, "", 0)
            for place in messages.indices {
                guard let pointer = unsafe messages[place], let message = unsafe messages[place]?.pointee else { continue }
                if unsafe message.rkt != lastTopic.pointer {
                    let name = unsafe message.rkt.flatMap { unsafe rd_kafka_topic_name($0) }.map { unsafe String(cString: $0) } ?? ""
                    unsafe lastTopic = (message.rkt, name, indices[name] ?? -1)
                }
                if unsafe message.err != RD_KAFKA_RESP_ERR_NO_ERROR {
                    let words = unsafe rd_kafka_message_errstr(pointer).map { unsafe String(cString: $0) } ?? ""
                    unsafe errors.append(
                        PartitionError(
                            partition: LogPartition(lastTopic.name, message.partition), error: message.err, words: words,
                            offset: message.offset))
                    continue
                }
                guard unsafe lastTopic.index >= 0 else { continue }
                unsafe state.ready.append(
                    topic: lastTopic.index, partition: message.partition, offset: message.offset,
                    timestamp: rd_kafka_message_timestamp(pointer, nil),
                    key: UnsafeRawBufferPointer(start: message.key, count: message.key_len),
                    value: message.payload.map { unsafe UnsafeRawBufferPointer(start: $0, count: message.len) },
                    contentType: Self.contentType(pointer))
            }
            if !state.ready.entries.isEmpty, case .down = state.connection {
                state.connection = .up
            }
            return errors
        }
    }

    /// Returns the value of the header with the record's content type. It is valid as long as the message.
    private static func contentType(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> UnsafeRawBufferPointer {
        var headers: OpaquePointer?
        guard unsafe rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers = unsafe headers else {
            return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        }
        for name in ["content-type", "Content-Type"] {
            var value: UnsafeRawPointer?
            var count = 0
            if unsafe rd_kafka_header_get_last(headers, name, &value, &count) == RD_KAFKA_RESP_ERR_NO_ERROR {
                return unsafe UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : count)
            }
        }
        return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Classifies an error of a partition: lost records, a missing topic, a denied right, or an error that passes.
    private func note(_ error: PartitionError, client: inout ReaderClient) {
        let partition = error.partition
        let isGap = error.error == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || error.error == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE
        logger.debug("kafka partition error", metadata: ["partition": "\(partition)", "error": "\(error.words)"])
        if isUnreachable(error.error) { return setConnection(down: cause(of: error.error, error.words)) }
        let denial = KafkaOperation.read.denial(error.error, topic: partition.topic)
        guard isGap || isMissingTopic(error.error) || denial != nil else { return }
        // A partition with a gap stops until it is assigned again, so that no record after the gap is delivered.
        if isGap { client.stop(partition) }
        let report =
            isGap
            ? SluiceError(
                .logGap, "The log no longer has the requested records of \(partition).", cause: cause(of: error.error, error.words))
            : denial ?? SluiceError(.logTopic, "\(partition) cannot be read.", cause: cause(of: error.error, error.words))
        shared.withLock { state in
            if isGap { state.assignment.remove(partition) }
            state.ready.problems.append(.init(partition: partition, error: report))
        }
    }

    // MARK: Commands

    private func apply(_ command: Command, to client: inout ReaderClient) {
        var failure: SluiceError?
        for partition in command.removing { stop(partition, in: &client) }
        for (partition, start) in command.starts {
            // Stopping a moved partition drops its records from before the move.
            stop(partition, in: &client)
            if let error = begin(partition, at: start, in: &client) { failure = failure ?? error }
        }
        if let failure { command.continuation.resume(throwing: failure) } else { command.continuation.resume() }
    }

    private func stop(_ partition: LogPartition, in client: inout ReaderClient) {
        client.stop(partition)
        let index = client.indices[partition.topic]
        shared.withLock { state in
            state.assignment.remove(partition)
            if let index { state.ready.drop(topic: index, partition: partition) }
        }
    }

    private func begin(_ partition: LogPartition, at start: KafkaStart, in client: inout ReaderClient) -> SluiceError? {
        guard let index = client.index(of: partition.topic) else { return TopicMetadata.badName(partition.topic) }
        // librdkafka's numbers: -2 is the beginning, -1 the end.
        let offset: Int64 =
            switch start {
            case .at(let offset): offset
            case .beginning: -2
            case .end: -1
            }
        // The topics of the batches grow with the client's, so that an index names the same topic in both.
        shared.withLock { state in
            if state.ready.topics.count < client.topics.count { state.ready.topics.append(partition.topic) }
        }
        let result = unsafe rd_kafka_consume_start_queue(client.topics[Int(index)].raw, partition.partition, offset, client.queue.raw)
        guard result == 0 else {
            return SluiceError(.logTopic, "\(partition) cannot be read from \(start).", cause: cause(of: rd_kafka_last_error()))
        }
        client.started.insert(partition)
        shared.withLock { state in _ = state.assignment.insert(partition) }
        return nil
    }

    // MARK: State

    private func serveEvents(_ client: borrowing ReaderClient) {
        while let event = unsafe rd_kafka_queue_poll(client.events.raw, 0) {
            defer { unsafe rd_kafka_event_destroy(event) }
            switch unsafe rd_kafka_event_type(event) {
            case RD_KAFKA_EVENT_LOG: unsafe forward(logEvent: event, to: logger)
            case RD_KAFKA_EVENT_ERROR:
                let error = unsafe rd_kafka_event_error(event)
                let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) } ?? text(of: error)
                logger.debug("kafka reader error", metadata: ["error": "\(words)"])
                unsafe trouble.note(errorEvent: event)
                if error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN { setConnection(down: cause(of: error, words)) }
            default: break
            }
        }
    }

    private func setConnection(down cause: ErrorCause) {
        let place = configuration.bootstrapServers
        let error = trouble.explain(SluiceError(.logUnreachable, "None of the Kafka brokers at \(place) answers.", cause: cause))
        shared.withLock { state in
            // Only the first report of an outage wakes the consumer.
            guard state.connection == .up else { return }
            state.connection = .down(error)
            state.hasNewConnection = true
        }
    }

    /// Asks once a second for metadata while the brokers are down: the library has no event for their return.
    private func probe(_ client: inout ReaderClient) {
        guard case .down = connection else { return }
        let now = clock.monotonicNanoseconds()
        guard now >= client.nextProbe else { return }
        client.nextProbe = now + 1_000_000_000
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let error = unsafe rd_kafka_metadata(client.handle.raw, 0, nil, &metadata, 200)
        if let metadata = unsafe metadata { unsafe rd_kafka_metadata_destroy(metadata) }
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        trouble.clear()
        shared.withLock { state in
            state.connection = .up
            state.hasNewConnection = true
        }
    }

    private func resumeWaiter() {
        let now = clock.monotonicNanoseconds()
        let waiter = shared.withLock { state -> Waiter? in
            guard let waiter = state.waiter, state.hasNews || waiter.deadline <= now else { return nil }
            return state.waiter.take()
        }
        waiter?.continuation.resume()
    }

    private func end(_ client: inout ReaderClient) {
        // From now on `wake` must not use the queue, which is about to be freed.
        shared.withLock { $0.queue = nil }
        client.free()
        let (waiter, commands, closers) = shared.withLock { state in
            state.isClosed = true
            state.assignment = []
            defer { (state.closers, state.commands) = ([], []) }
            return (state.waiter.take(), state.commands, state.closers)
        }
        waiter?.continuation.resume(throwing: Self.closedError)
        for command in commands { command.continuation.resume(throwing: Self.closedError) }
        for closer in closers { closer.resume() }
    }
}

/// A box that passes the client to its thread.
private final class ReaderClientBox: Sendable {
    let client: Mutex<ReaderClient>

    init(_ client: consuming Mutex<ReaderClient>) { self.client = client }
}
