import CLibPQ
import SluiceCore
import SluicePorts
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The loop of a replication thread: socket → decoder → batch → mailbox, and status messages back. Used only on its thread.
@safe
final class ReplicationReader {
    private let configuration: ReplicationConfiguration
    private let mailbox: ReplicationMailbox
    private let session: PostgresSession
    private var decoder: PgOutputDecoder
    private var batch = CaptureBatch()
    /// The position before which everything has been decoded.
    private var reached: LSN = .zero
    private var reported: LSN = .zero
    private var isStatusWanted = false
    private var nextStatus: ContinuousClock.Instant
    private var lastReceived: ContinuousClock.Instant
    private let statusInterval: Duration

    private static let longestInterval: Duration = .seconds(10)
    /// The silence after which the server is asked for a reply, and the silence after which the connection counts as lost.
    private static let silenceBeforeAsking: Duration = .seconds(20)
    private static let silenceBeforeGivingUp: Duration = .seconds(60)

    /// Connects and starts the replication.
    init(_ configuration: ReplicationConfiguration, _ mailbox: ReplicationMailbox) throws {
        self.configuration = configuration
        self.mailbox = mailbox
        decoder = PgOutputDecoder(
            schema: configuration.schema, tables: configuration.tables, bounds: configuration.bounds, computed: configuration.computed)
        session = try PostgresSession(configuration.conninfo, replication: true)
        let timeout = try session.script("SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'").int(0, 0) ?? 0
        // Four status messages in the server's timeout, and at least one every 10 s.
        statusInterval = timeout > 0 ? min(Self.longestInterval, .milliseconds(timeout / 4)) : Self.longestInterval
        nextStatus = .now
        lastReceived = .now
        try startReplication()
    }

    private func startReplication() throws {
        let names = configuration.publications.map(SQLQuote.identifier).joined(separator: ",")
        let sql = """
            START_REPLICATION SLOT \(SQLQuote.identifier(configuration.slot)) LOGICAL \(configuration.start) \
            (proto_version '1', publication_names \(SQLQuote.postgresLiteral(names)), messages 'true')
            """
        guard unsafe PQsendQuery(session.handle, sql) == 1 else { throw session.broke(sql) }
        let result = unsafe try session.nextResult(sql, .now + .seconds(30))
        defer { unsafe PQclear(result) }
        if let failure = unsafe session.failure(of: result, sql) { throw slotFailure(failure, isStarting: true) }
        guard unsafe PQresultStatus(result) == PGRES_COPY_BOTH else {
            throw PostgresError(.postgresStatement, "“\(sql.shortened)” did not start a replication.")
        }
    }

    /// Runs until the stream is closed or fails. Blocks the thread.
    ///
    /// - Returns: The reason for the end.
    func run() -> any Error {
        do {
            try loop()
            return PostgresError(.shuttingDown, "The stream of the slot “\(configuration.slot)” has been closed.")
        } catch {
            return error
        }
    }

    private func loop() throws {
        while true {
            let (isClosing, confirmed) = mailbox.state.withLock { ($0.isClosing, $0.confirmed) }
            if isClosing { return try sayGoodbye(confirmed) }
            try readAvailable()
            let step = handOver()
            try reportStatus(confirmed)
            // libpq may hold messages for which the full batch had no room. The socket does not report those.
            if step != .readOn { try wait(readingSocket: step == .waitForBoth) }
        }
    }

    // MARK: Reading

    private var isFull: Bool {
        batch.changes.count >= configuration.batchChanges || batch.rows.byteCount >= configuration.batchBytes
            || batch.unfit.count >= configuration.batchChanges || batch.transactions.count >= configuration.batchChanges
    }

    /// Decodes the data that libpq has received, until the batch is full.
    private func readAvailable() throws {
        while !isFull {
            var start: UnsafeMutablePointer<CChar>?
            let length = unsafe PQgetCopyData(session.handle, &start, 1)
            if length == 0 { return }
            guard length > 0, let start = unsafe start else { throw ended(length) }
            defer { unsafe PQfreemem(start) }
            try unsafe take(UnsafeBufferPointer(start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: Int(length)))
        }
    }

    private func take(_ message: UnsafeBufferPointer<UInt8>) throws {
        do {
            var reader = unsafe MessageReader(message)
            switch try reader.byte() {
            case UInt8(ascii: "w"):
                // The header: the start and the end of the data, and the server's time.
                _ = unsafe try reader.bytes(24)
                unsafe try decoder.decode(reader.rest, into: &batch)
                if !decoder.isInTransaction { reached = max(reached, batch.reached) }
            case UInt8(ascii: "k"):
                let end = try reader.lsn()
                _ = try reader.uint64()
                if try reader.byte() == 1 { isStatusWanted = true }
                // Inside a transaction the server's position is ahead of the decoded data.
                if !decoder.isInTransaction { reached = max(reached, end) }
            case let kind: throw MalformedMessage(reason: "its kind \(kind) is unknown")
            }
        } catch let malformed as MalformedMessage {
            throw PostgresError(
                .internalError,
                "A message of the slot “\(configuration.slot)” cannot be read.",
                fix: "Report this with the versions of PostgreSQL and Sluice.", cause: .text(malformed.reason))
        }
    }

    private enum Step {
        case readOn
        case waitForBoth
        /// No data may be read before the ready batch has been taken.
        case waitForTaker
    }

    /// Hands the batch to the mailbox if it is full or at the end of a transaction.
    private func handOver() -> Step {
        let isFull = isFull
        if batch.isEmpty, !decoder.isInTransaction {
            // Rows that cancel each other out leave bytes behind.
            batch.removeAll()
            // While a batch is pending, its own position counts.
            mailbox.state.withLock { if $0.ready == nil { $0.reached = max($0.reached, reached) } }
            return isFull ? .readOn : .waitForBoth
        }
        guard isFull || !decoder.isInTransaction else { return .waitForBoth }
        // The mailbox is checked before the transaction is cut, since a cut cannot be undone.
        let isTaken = mailbox.state.withLock { state in
            state.isStalled = isFull && state.ready != nil
            return state.ready != nil
        }
        if isTaken { return isFull ? .waitForTaker : .waitForBoth }
        decoder.cut(&batch)
        batch.reached = reached
        batch = mailbox.offer(batch)
        return isFull ? .readOn : .waitForBoth
    }

    // MARK: Waiting

    /// Waits for the socket, a wake-up, the next status or the task's deadline.
    ///
    /// - Parameter readingSocket: `false` for backpressure: the server waits until the ready batch has been taken.
    private func wait(readingSocket: Bool) throws {
        let deadline = mailbox.state.withLock(\.deadline)
        // The next status bounds the wait, and so does the task's deadline.
        let until = min(nextStatus, deadline ?? nextStatus)
        let unsent = unsafe PQflush(session.handle)
        if unsent < 0 { throw session.broke("START_REPLICATION") }
        var events: Int16 = readingSocket ? Int16(POLLIN) : 0
        if unsent > 0 { events |= Int16(POLLOUT) }
        var entries = unsafe (
            pollfd(fd: PQsocket(session.handle), events: events, revents: 0),
            pollfd(fd: mailbox.pipe.readEnd, events: Int16(POLLIN), revents: 0)
        )
        let ready = unsafe withUnsafeMutablePointer(to: &entries) { entries in
            unsafe entries.withMemoryRebound(to: pollfd.self, capacity: 2) { unsafe poll($0, 2, (until - .now).pollMilliseconds) }
        }
        if ready < 0, errno != EINTR { throw session.broke("START_REPLICATION") }
        if entries.1.revents != 0 { mailbox.pipe.drain() }
        if readingSocket {
            if entries.0.revents != 0 {
                lastReceived = .now
                if unsafe PQconsumeInput(session.handle) == 0 { throw session.broke("START_REPLICATION") }
            }
        } else {
            // Under backpressure the server's silence is no fault of its own.
            lastReceived = .now
        }
        if let deadline, deadline <= .now { mailbox.resumeWaiter() }
    }

    // MARK: Status

    /// Sends a status if the server wants one, the confirmed position has grown, or the interval is over.
    ///
    /// - Throws: `postgresUnreachable` after 60 s of silence.
    private func reportStatus(_ confirmed: LSN) throws {
        let now = ContinuousClock.now
        let silence = now - lastReceived
        if silence > Self.silenceBeforeGivingUp {
            throw PostgresError(
                .postgresUnreachable, "\(session.name) has been silent for \(silence) on the slot “\(configuration.slot)”.")
        }
        guard isStatusWanted || confirmed > reported || now >= nextStatus else { return }
        try sendStatus(confirmed, wantsReply: silence > Self.silenceBeforeAsking)
        isStatusWanted = false
        nextStatus = now + statusInterval
    }

    private func sendStatus(_ confirmed: LSN, wantsReply: Bool) throws {
        var message: [UInt8] = [UInt8(ascii: "r")]
        let wall = SystemEnvironment().wallMilliseconds() * 1_000 - PgOutputDecoder.epoch
        // The written, flushed and applied positions, and the time since 2000 in microseconds.
        for field in [max(reached, confirmed).rawValue, confirmed.rawValue, confirmed.rawValue, UInt64(bitPattern: wall)] {
            for shift in stride(from: 56, through: 0, by: -8) { message.append(UInt8(truncatingIfNeeded: field >> UInt64(shift))) }
        }
        message.append(wantsReply ? 1 : 0)
        let sent = unsafe message.withUnsafeBytes { bytes in
            unsafe PQputCopyData(session.handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        if sent < 0 { throw session.broke("START_REPLICATION") }
        reported = confirmed
        if unsafe PQflush(session.handle) < 0 { throw session.broke("START_REPLICATION") }
    }

    /// Sends the last status and the end of the copy, and waits up to 2 s for the server's answer. After it the slot is free.
    private func sayGoodbye(_ confirmed: LSN) throws {
        try sendStatus(confirmed, wantsReply: false)
        unsafe PQputCopyEnd(session.handle, nil)
        // A server inside a long transaction does not answer. It notices the closed socket instead.
        let deadline = ContinuousClock.now + .seconds(2)
        while true {
            var start: UnsafeMutablePointer<CChar>?
            let length = unsafe PQgetCopyData(session.handle, &start, 1)
            unsafe PQfreemem(start)
            if length < 0 { break }
            if length == 0 { do { try session.pump(deadline) } catch { return } }
        }
        session.drain()
    }

    private func ended(_ length: Int32) -> any Error {
        if length == -2 { return session.broke("START_REPLICATION") }
        let result = unsafe PQgetResult(session.handle)
        defer { unsafe PQclear(result) }
        guard let failure = unsafe session.failure(of: result, "START_REPLICATION") else {
            return PostgresError(.postgresUnreachable, "\(session.name) ended the stream of the slot “\(configuration.slot)”.")
        }
        return slotFailure(failure, isStarting: false)
    }

    private func slotFailure(_ failure: any Error, isStarting: Bool) -> any Error {
        guard let failure = failure as? PostgresError, let state = failure.sqlState else { return failure }
        var code: ErrorCode?
        switch state {
        case "55006": code = .slotBusy
        // The slot does not exist. After the start this state refers to a publication.
        case "42704" where isStarting: code = .slotLost
        // The slot was invalidated. 55000 also reports settings that forbid decoding, which are checked before.
        case "55000" where failure.message.contains("slot"): code = .slotLost
        // undefined_file: the server has removed WAL that the slot needs.
        case "58P01": code = .slotLost
        default: break
        }
        guard let code else { return failure }
        return PostgresError(
            code, "The slot “\(configuration.slot)” cannot be read.", cause: failure.asSluiceError.cause, sqlState: state)
    }
}
