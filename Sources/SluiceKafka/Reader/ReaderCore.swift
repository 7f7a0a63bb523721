import CRdKafka
import Dispatch
import Logging
import SluiceCore
import SluicePorts
import Synchronization

/// The shared half of a reader: the state that its consumer and the polling thread use. `ReaderCore+Thread` is the thread's side.
final class ReaderCore: Sendable {
    struct Command: Sendable {
        var starts: [LogPartition: KafkaStart]
        var removing: Set<LogPartition>
        var continuation: CheckedContinuation<Void, any Error>
    }

    struct Waiter: Sendable {
        var id: UInt64
        /// The deadline, in nanoseconds of the monotonic clock.
        var deadline: UInt64
        var continuation: CheckedContinuation<Void, any Error>
    }

    struct Shared {
        /// The records that the thread has read and the consumer has not taken.
        var ready = KafkaFetchBatch()
        var assignment: Set<LogPartition> = []
        var connection = KafkaConnection.up
        /// `true` if `connection` has changed since the consumer last took a batch.
        var hasNewConnection = false
        var commands: [Command] = []
        var waiter: Waiter?
        var lastWait: UInt64 = 0
        var isClosing = false
        var isClosed = false
        var closers: [CheckedContinuation<Void, Never>] = []
        /// The queue on which the thread sleeps, for waking it; nil once the thread ends.
        var queue: KafkaPointer?
        /// The time until which the thread sleeps, in monotonic nanoseconds.
        var sleepsUntil: UInt64 = 0

        var hasNews: Bool { !ready.isEmpty || hasNewConnection }
    }

    static let closedError = SluiceError(.logUnreachable, "The Kafka reader is closed.", fix: "Read before closing it.")

    let configuration: KafkaConfiguration
    let logger: Logger
    let trouble: BrokerTrouble
    let clock = SystemEnvironment()
    let shared = Mutex(Shared())
    /// The semaphore that wakes the thread while a full batch stops the polling.
    let room = DispatchSemaphore(value: 0)

    init(_ configuration: KafkaConfiguration, logger: Logger, trouble: BrokerTrouble) {
        self.configuration = configuration
        self.logger = logger
        self.trouble = trouble
    }

    var assignment: Set<LogPartition> { shared.withLock { $0.assignment } }
    var waiting: Int { shared.withLock { $0.ready.bytes.count } }
    var connection: KafkaConnection { shared.withLock { $0.connection } }

    func assign(_ starts: [LogPartition: KafkaStart], removing: Set<LogPartition>) async throws {
        // Negative numbers have meanings of their own in librdkafka, so they must not reach it.
        for partition in starts.keys where partition.partition < 0 {
            throw SluiceError(.logTopic, "\(partition) is not a partition.", fix: "Partitions are numbered from 0.")
        }
        for (partition, start) in starts {
            guard case .at(let offset) = start, offset < 0 else { continue }
            throw SluiceError(.logTopic, "\(partition) has no offset \(offset).", fix: "Offsets are numbered from 0.")
        }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let isAccepted = shared.withLock { state in
                guard !state.isClosing else { return false }
                state.commands.append(Command(starts: starts, removing: removing, continuation: continuation))
                return true
            }
            guard isAccepted else { return continuation.resume(throwing: Self.closedError) }
            wake()
        }
    }

    /// Swaps the ready batch with an empty one.
    ///
    /// - Returns: `true` if the batch has records, problems or a new state of the connection.
    /// - Throws: `logUnreachable` if the reader is closed.
    func take(into batch: inout KafkaFetchBatch) throws -> Bool {
        let (hadNews, wasFull) = try shared.withLock { state in
            if state.isClosing { throw Self.closedError }
            let hadNews = state.hasNews
            let wasFull = state.ready.bytes.count >= configuration.readerBytes
            if hadNews {
                // The topics stay with the reader, because indices refer to them for its whole life.
                let topics = state.ready.topics
                // The consumer gives its empty batch in exchange, so both arenas keep their capacity.
                swap(&state.ready, &batch)
                state.ready.topics = topics
                state.hasNewConnection = false
            }
            batch.connection = state.connection
            return (hadNews, wasFull)
        }
        // The thread stopped polling at the limit.
        if wasFull { room.signal() }
        return hadNews
    }

    /// Waits until a batch is ready or the timeout has passed.
    func wait(_ timeout: Duration) async throws {
        let deadline = clock.monotonicNanoseconds() + timeout.nanoseconds
        let id = shared.withLock { state in
            state.lastWait += 1
            return state.lastWait
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                register(Waiter(id: id, deadline: deadline, continuation: continuation))
            }
        } onCancel: {
            let waiter = shared.withLock { state -> Waiter? in
                // A wait that is cancelled before it registers then finds that its number has passed.
                guard state.waiter?.id == id else {
                    state.lastWait = max(state.lastWait, id + 1)
                    return nil
                }
                return state.waiter.take()
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    private func register(_ waiter: Waiter) {
        enum Outcome { case ready, waits(wake: Bool), fails(any Error) }
        let outcome = shared.withLock { state -> Outcome in
            if state.isClosing { return .fails(Self.closedError) }
            // The wait was cancelled before its registration.
            if state.lastWait != waiter.id { return .fails(CancellationError()) }
            if state.waiter != nil {
                return .fails(SluiceError(.internalError, "Two tasks wait for one Kafka reader.", fix: "Read from one task."))
            }
            if state.hasNews { return .ready }
            state.waiter = waiter
            // The thread is woken only if it would sleep beyond the deadline.
            return .waits(wake: waiter.deadline < state.sleepsUntil)
        }
        switch outcome {
        case .ready: waiter.continuation.resume()
        case .waits(let mustWake): if mustWake { wake() }
        case .fails(let error): waiter.continuation.resume(throwing: error)
        }
    }

    func close() async {
        await withCheckedContinuation { continuation in
            // Each call waits for the end of the thread, also the second one.
            let isClosed = shared.withLock { state in
                guard !state.isClosed else { return true }
                state.isClosing = true
                state.closers.append(continuation)
                return false
            }
            if isClosed { return continuation.resume() }
            wake()
        }
    }

    /// Wakes the thread from its wait for room or for records.
    private func wake() {
        room.signal()
        shared.withLock { state in
            // Under the lock, because the thread frees the queue after it has removed it here.
            if let queue = state.queue { unsafe rd_kafka_queue_yield(queue.raw) }
        }
    }
}
