package import SluiceCore
package import SluicePorts
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The slot to read, and the schema for decoding it.
package struct ReplicationConfiguration: Sendable {
    package var conninfo: String
    package var slot: String
    package var publications: [String]
    package var schema: Schema
    package var tables: [TableMapping]
    /// The bounds of rows.
    package var bounds: RowBounds
    /// Receives the relations whose columns the reader of the stream computes.
    package var computed = ComputedRelations()
    /// The position to start at. If the slot is ahead of it, the slot's own position is used, as by default.
    package var start: LSN = .zero
    /// The bounds of one batch, in changes and bytes.
    package var batchChanges = Limits.captureBatchChanges
    package var batchBytes = Limits.captureBatchBytes

    package init(
        conninfo: String, slot: String, publications: [String], schema: Schema, tables: [TableMapping], bounds: RowBounds = RowBounds()
    ) {
        self.conninfo = conninfo
        self.slot = slot
        self.publications = publications
        self.schema = schema
        self.tables = tables
        self.bounds = bounds
    }
}

/// A replication slot being read: committed transactions in commit order, in batches.
///
/// A thread of its own waits for the socket, decodes, and answers the server's keep-alives, even while no batch is taken. At most
/// two batches exist inside (one ready, one being filled). If both are full, the socket is not read and the server waits. A
/// transaction that does not fit into one batch arrives in pieces.
///
/// A stream that has ended throws its error from every later `next`: `slotBusy`, `slotLost`, `postgresUnreachable`,
/// `postgresStatement`, or `shuttingDown` after `close`.
package final class ReplicationStream: Sendable {
    private let mailbox: ReplicationMailbox

    private init(_ mailbox: ReplicationMailbox) { self.mailbox = mailbox }

    deinit {
        // The thread ends asynchronously; only `close` waits for it.
        mailbox.state.withLock { $0.isClosing = true }
        mailbox.pipe.wake()
    }

    /// Connects and starts reading.
    ///
    /// - Throws: `slotBusy` while another process reads the slot, `slotLost` if the slot is missing or invalidated.
    package static func open(_ configuration: ReplicationConfiguration) async throws -> ReplicationStream {
        guard let pipe = WakePipe() else {
            throw PostgresError(.internalError, "The process has no file descriptor left for reading the slot “\(configuration.slot)”.")
        }
        let mailbox = ReplicationMailbox(pipe: pipe)
        // The thread resumes `started` once the replication runs or has failed.
        try await withCheckedThrowingContinuation { started in
            ReplicationThread.start(ReplicationThread.Order(configuration: configuration, mailbox: mailbox, started: started))
        }
        return ReplicationStream(mailbox)
    }

    /// Replaces the batch's content with the next data, and waits for it at most `limit`.
    ///
    /// If no data arrived, the batch is empty and its `reached` is the position read so far. The buffers of the batch are reused,
    /// so pass the same one each time. Only one task may call it at a time.
    package func next(into batch: inout CaptureBatch, waitingAtMost limit: Duration) async throws {
        if try mailbox.take(&batch) == .taken { return }
        try Task.checkCancellation()
        try await mailbox.wait(until: .now + limit)
        _ = try mailbox.take(&batch)
    }

    /// Takes a batch and returns it with the next data, for callers that cannot lend a stored property.
    package func next(_ batch: consuming CaptureBatch, waitingAtMost limit: Duration) async throws -> CaptureBatch {
        var batch = batch
        try await next(into: &batch, waitingAtMost: limit)
        return batch
    }

    /// Confirms that everything before `lsn` is stored elsewhere, so that PostgreSQL may discard it. The server is notified at
    /// once.
    package func confirm(_ lsn: LSN) { mailbox.confirm(lsn) }

    /// Ends the stream, sends the last confirmed position, and waits until the slot's connection is closed.
    package func close() async { await mailbox.close() }
}

/// The thread of one stream.
enum ReplicationThread {
    struct Order: Sendable {
        var configuration: ReplicationConfiguration
        var mailbox: ReplicationMailbox
        var started: CheckedContinuation<Void, any Error>
    }

    final class Box: Sendable {
        let order: Order
        init(_ order: Order) { self.order = order }
    }

    static func start(_ order: Order) {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let box = unsafe Unmanaged.passRetained(Box(order))
        #if canImport(Darwin)
            var thread: pthread_t?
        #else
            var thread = pthread_t()
        #endif
        let failed = unsafe pthread_create(&thread, &attributes, replicationThread, box.toOpaque())
        unsafe pthread_attr_destroy(&attributes)
        if failed != 0 {
            // The thread never ran, so its reference is released here.
            unsafe box.release()
            order.started.resume(
                throwing: PostgresError(.internalError, "No thread could be created for reading the slot “\(order.configuration.slot)”."))
        }
    }

    static func run(_ order: Order) {
        // The connection is closed when `serve` returns. Only then are waiting tasks resumed, so that the slot is free for them.
        order.mailbox.finish(serve(order))
    }

    private static func serve(_ order: Order) -> any Error {
        do {
            let reader = try ReplicationReader(order.configuration, order.mailbox)
            order.started.resume()
            return reader.run()
        } catch {
            order.started.resume(throwing: error)
            return error
        }
    }
}

#if canImport(Darwin)
    private func replicationThread(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        ReplicationThread.run(unsafe Unmanaged<ReplicationThread.Box>.fromOpaque(context).takeRetainedValue().order)
        return nil
    }
#else
    private func replicationThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let context = unsafe context {
            ReplicationThread.run(unsafe Unmanaged<ReplicationThread.Box>.fromOpaque(context).takeRetainedValue().order)
        }
        return nil
    }
#endif
