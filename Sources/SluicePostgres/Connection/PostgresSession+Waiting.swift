import CLibPQ
import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension PostgresSession {
    /// The time within which a cancelled statement must end.
    static let graceAfterCancel: Duration = .seconds(2)

    /// Checks that a statement may be sent.
    ///
    /// - Returns: The deadline of the statement.
    func begin(_ sql: String, _ limit: Duration?) throws -> ContinuousClock.Instant {
        if isBroken {
            throw PostgresError(.postgresUnreachable, "The connection to \(name) is broken; “\(sql.shortened)” was not sent.")
        }
        if isStreaming {
            throw PostgresError(
                .postgresStatement, "“\(sql.shortened)” cannot run while the rows of another statement are being read.",
                fix: "Use another connection of the pool.")
        }
        // libpq reads a statement up to its first NUL and would omit the rest.
        if sql.utf8.contains(0) {
            throw PostgresError(
                .postgresStatement, "A statement contains a NUL character, which PostgreSQL cannot read (SQLSTATE 22021).",
                sqlState: "22021")
        }
        if canceller.isRequested { throw CancellationError() }
        return .now + (limit ?? self.limit)
    }

    /// Reads all results of the statements that were sent.
    ///
    /// - Returns: The last result.
    /// - Throws: The first error.
    func finish(_ sql: String, _ deadline: ContinuousClock.Instant) throws -> PostgresResult {
        var last: OpaquePointer?
        var failure: (any Error)?
        do {
            while let result = unsafe try nextResult(sql, deadline) {
                unsafe PQclear(last)
                unsafe last = result
                if let error = unsafe self.failure(of: result, sql), failure == nil { failure = error }
                // The server now expects COPY data, so the connection is out of step.
                if unsafe PQresultStatus(result).isCopy {
                    markBroken()
                    throw PostgresError(.postgresStatement, "“\(sql.shortened)” is a COPY; use copyIn.")
                }
            }
        } catch {
            unsafe PQclear(last)
            throw error
        }
        if let failure {
            unsafe PQclear(last)
            throw failure
        }
        return unsafe PostgresResult(last)
    }

    /// Returns the next result, or nil if none is left. When the deadline passes, it cancels the statement.
    ///
    /// - Throws: `timeout` if the statement was cancelled. The error is `postgresUnreachable` if the connection breaks or the
    ///   server does not react to the cancellation.
    func nextResult(_ sql: String, _ deadline: ContinuousClock.Instant) throws -> OpaquePointer? {
        var deadline = deadline
        var isCancelling = false
        while unsafe PQisBusy(handle) == 1 {
            do {
                try pump(deadline)
            } catch let error as PostgresError where error.code == .timeout {
                // The second deadline has passed: the server does not react to the cancellation either.
                if isCancelling { throw unanswered(sql) }
                isCancelling = true
                canceller.send()
                deadline = .now + Self.graceAfterCancel
            } catch {
                throw broke(sql)
            }
        }
        let result = unsafe PQgetResult(handle)
        if isCancelling {
            if !canceller.settle() { markBroken() }
            if unsafe PQresultStatus(result) == PGRES_FATAL_ERROR {
                unsafe PQclear(result)
                drain()
                throw PostgresError(.timeout, "“\(sql.shortened)” on \(name) took longer than its limit and was cancelled.")
            }
        }
        return unsafe result
    }

    /// Sends pending output and reads available input. Waits for either until the deadline.
    ///
    /// - Throws: The errors of `SocketWait`, which callers replace by one with the statement.
    func pump(_ deadline: ContinuousClock.Instant) throws {
        let unsent = unsafe PQflush(handle)
        if unsent < 0 { throw SocketWait.broken }
        let events = unsent > 0 ? POLLIN | POLLOUT : POLLIN
        try waitForSocket(Int16(events), deadline)
        if unsafe PQconsumeInput(handle) == 0 { throw SocketWait.broken }
    }

    /// Returns when all pending output has been sent, which the server need not answer.
    ///
    /// In that case `pump` would wait for an answer if its own flush sent the last of the output.
    func waitToSend(_ deadline: ContinuousClock.Instant) throws {
        while true {
            let unsent = unsafe PQflush(handle)
            if unsent < 0 { throw SocketWait.broken }
            if unsent == 0 { return }
            try waitForSocket(Int16(POLLIN | POLLOUT), deadline)
            // A server whose output is not read stops reading.
            if unsafe PQconsumeInput(handle) == 0 { throw SocketWait.broken }
        }
    }

    func waitForSocket(_ events: Int16, _ deadline: ContinuousClock.Instant) throws {
        let descriptor = unsafe PQsocket(handle)
        guard descriptor >= 0 else { throw SocketWait.broken }
        try SocketWait.wait(descriptor, events, until: deadline)
    }

    /// `true` if the server has closed the idle connection.
    var hasClosed: Bool {
        // A server sends an error before it closes a connection. The end is visible only after that has been read.
        for _ in 0..<8 {
            var entry = unsafe pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
            if entry.fd < 0 { return true }
            if unsafe poll(&entry, 1, 0) <= 0 { return false }
            if unsafe PQconsumeInput(handle) == 0 || PQstatus(handle) == CONNECTION_BAD { return true }
        }
        return false
    }

    /// Discards the remaining results of a statement, so that the connection can be reused.
    func drain() {
        let deadline = ContinuousClock.now + Self.graceAfterCancel
        while true {
            while unsafe PQisBusy(handle) == 1 {
                do { try pump(deadline) } catch { return markBroken() }
            }
            guard let result = unsafe PQgetResult(handle) else { return }
            unsafe PQclear(result)
        }
    }

    /// Returns the error of a result; nil if it has none.
    func failure(of result: OpaquePointer?, _ sql: String) -> (any Error)? {
        switch unsafe PQresultStatus(result) {
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: break
        default: return nil
        }
        func field(_ code: Int32) -> String? { unsafe PQresultErrorField(result, code).map { unsafe String(cString: $0) } }
        guard let state = field(Self.field("C")) else { return broke(sql) }
        // query_canceled: the task's own cancellation.
        if state == "57014", canceller.isRequested { return CancellationError() }
        if unsafe PQstatus(handle) == CONNECTION_BAD { markBroken() }
        let words = [field(Self.field("M")), field(Self.field("D"))].compactMap(\.self).joined(separator: ". ")
        // A server that shuts down or starts answers every statement with these codes.
        let isLeaving = ["57P01", "57P02", "57P03"].contains(state)
        let code: ErrorCode = isLeaving ? .postgresUnreachable : .postgresStatement
        var failure = PostgresError(
            code, "PostgreSQL (\(name)) rejected “\(sql.shortened)”.", fix: field(Self.field("H")),
            cause: .postgres(sqlState: state, text: words), sqlState: state)
        failure.constraint = field(Self.field("n"))
        failure.schema = field(Self.field("s"))
        failure.table = field(Self.field("t"))
        failure.column = field(Self.field("c"))
        // An answer on a working connection is definite.
        failure.mayHaveTakenEffect = isBroken
        return failure
    }

    private static func field(_ letter: Unicode.Scalar) -> Int32 { Int32(letter.value) }

    /// Marks the connection as broken and returns the failure, with libpq's reason.
    func broke(_ sql: String) -> PostgresError {
        markBroken()
        let reason = unsafe String(cString: PQerrorMessage(handle)).shortened
        return PostgresError(
            .postgresUnreachable, "The connection to \(name) broke during “\(sql.shortened)”.",
            cause: .postgres(sqlState: nil, text: reason), mayHaveTakenEffect: true)
    }

    private func unanswered(_ sql: String) -> PostgresError {
        markBroken()
        return PostgresError(
            .postgresUnreachable, "\(name) did not answer “\(sql.shortened)” in time, nor the request to cancel it.",
            mayHaveTakenEffect: true)
    }
}

extension ExecStatusType {
    var isCopy: Bool { [PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH].contains(self) }
}

/// A wait for one descriptor by `poll(2)`.
enum SocketWait {
    /// The deadline has passed.
    static let late = PostgresError(.timeout, "The connection was not ready in time.")
    /// The connection cannot be used any more.
    static let broken = PostgresError(.postgresUnreachable, "The connection is broken.")

    /// - Throws: `late` or `broken`.
    static func wait(_ descriptor: Int32, _ events: Int16, until deadline: ContinuousClock.Instant) throws {
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        while true {
            let left = deadline - .now
            if left <= .zero { throw late }
            let ready = unsafe poll(&entry, 1, left.pollMilliseconds)
            if ready > 0 { return }
            if ready < 0, errno != EINTR { throw broken }
        }
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up: a wait that ended just before its deadline would spin. At most 10⁹.
    package var pollMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        if seconds > 1_000_000 { return 1_000_000_000 }
        return Int32(max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
