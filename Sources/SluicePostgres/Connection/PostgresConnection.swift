package import Dispatch
import SluiceCore

/// A connection to PostgreSQL with a serial queue of its own. Calls run one after another.
///
/// If the calling task is cancelled, the statement is cancelled on the server and the call throws `CancellationError`. Other
/// failures are `PostgresError`s. Transactions belong to the connection, not to a task: share a connection between tasks only
/// through a `PostgresPool`.
package actor PostgresConnection {
    private nonisolated let executor: QueueExecutor
    private var opened: PostgresSession?
    private let statementLimit: Duration

    /// The time limit of statements that specify none, unless a connection has its own.
    package static let statementLimit = Duration.seconds(30)

    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private init(_ executor: QueueExecutor, _ statementLimit: Duration) {
        self.executor = executor
        self.statementLimit = statementLimit
    }

    /// Connects. `conninfo` is libpq's: `host=… port=… dbname=… user=… password=…` or a `postgresql://` URI.
    ///
    /// - Parameter statementLimit: The time limit of statements that specify none.
    /// - Throws: `postgresUnreachable` if the server refuses or does not answer within the limit, `configInvalid` if the string is
    ///   malformed. No error shows the password.
    package static func connect(
        _ conninfo: String, within limit: Duration = .seconds(10), statementLimit: Duration = PostgresConnection.statementLimit
    ) async throws -> PostgresConnection {
        let connection = PostgresConnection(QueueExecutor("sluice.postgres"), statementLimit)
        try await connection.open(conninfo, limit)
        return connection
    }

    private func open(_ conninfo: String, _ limit: Duration) throws {
        let session = try PostgresSession(conninfo, within: limit)
        session.limit = statementLimit
        opened = session
    }

    /// Closes the connection; later calls fail. Dropping the last reference does the same.
    package func close() { opened = nil }

    /// `true` if the connection can run further statements. Reads the socket without waiting.
    package var isUsable: Bool { opened.map { !$0.isBroken && !$0.hasClosed } ?? false }

    /// Rolls back an open transaction and resets the time limit.
    ///
    /// - Returns: `false` if the connection is broken.
    func tidy() -> Bool {
        guard let opened else { return false }
        opened.rollback()
        opened.limit = statementLimit
        return !opened.isBroken
    }

    /// Runs one statement and returns its rows. With `cached`, the text is prepared once per connection.
    @discardableResult
    package func query(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) async throws -> PostgresResult {
        try await withSession { try $0.query(sql, parameters, cached: cached, within: limit) }
    }

    /// Runs one statement and returns the number of rows that it affected.
    @discardableResult
    package func execute(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) async throws -> Int {
        try await withSession { try $0.execute(sql, parameters, cached: cached, within: limit) }
    }

    /// Runs several statements separated by semicolons, without parameters.
    ///
    /// - Returns: The result of the last statement.
    @discardableResult
    package func script(_ sql: String, within limit: Duration? = nil) async throws -> PostgresResult {
        try await withSession { try $0.script(sql, within: limit) }
    }

    /// Runs `COPY … FROM STDIN` with the given chunks of data.
    ///
    /// - Returns: The number of copied rows.
    @discardableResult
    package func copyIn(_ sql: String, _ chunks: [[UInt8]], within limit: Duration? = nil) async throws -> Int {
        try await withSession { try $0.copyIn(sql, within: limit, chunks) }
    }

    /// Runs the body on the connection's queue, where statements are blocking calls: one hop for many statements.
    ///
    /// The body must wait for nothing else, because it blocks the queue.
    package func withSession<R: Sendable>(_ body: @Sendable (PostgresSession) throws -> R) async throws -> R {
        let session = try idleSession()
        // Each call has a scope of its own, so that a late cancellation cannot hit the next call.
        let scope = session.canceller.open()
        // Only a closure that captures `self` is isolated to this actor. Otherwise it would leave the queue and block a thread of
        // the cooperative pool.
        return try await withTaskCancellationHandler {
            try self.run(session, body)
        } onCancel: { [canceller = session.canceller] in
            canceller.cancel(scope: scope)
        }
    }

    /// The result of lending a session to a borrower of the pool.
    enum Lent<R: Sendable>: Sendable {
        /// The body has run, and the connection is clean.
        case done(Result<R, any Error>)
        /// The body has run, but the connection cannot be used again.
        case broke(Result<R, any Error>)
        /// The server had closed the connection before; the body has not run.
        case wasClosed
    }

    /// Combines `isUsable`, `withSession` and `tidy` in one hop.
    func lend<R: Sendable>(_ body: @Sendable (PostgresSession) throws -> R) async -> Lent<R> {
        guard isUsable else { return .wasClosed }
        let result: Result<R, any Error>
        do {
            result = .success(try await withSession(body))
        } catch {
            result = .failure(error)
        }
        return tidy() ? .done(result) : .broke(result)
    }

    private func run<R>(_ session: PostgresSession, _ body: (PostgresSession) throws -> R) throws -> R {
        executor.checkIsolated()
        defer { close(session.canceller) }
        try Task.checkCancellation()
        return try body(session)
    }

    /// Ends the scope of cancellation. If a request is still in flight, the connection counts as broken.
    private func close(_ canceller: StatementCanceller) {
        if !canceller.close() { opened?.markBroken() }
    }

    /// Runs a SELECT of any size in chunks.
    ///
    /// On the connection's queue, `row` fills a chunk and returns `true` when it is full. Then `deliver` receives the chunk, and
    /// the next rows are read after it returns. No other statement can run on this connection until the stream has ended.
    package func stream<Chunk: Sendable>(
        _ sql: String, _ parameters: [PostgresParameter] = [], within limit: Duration? = nil,
        chunk makeChunk: @Sendable () -> Chunk,
        row: @Sendable (PostgresRow, inout Chunk) throws -> Bool,
        deliver: @Sendable (Chunk) async throws -> Void
    ) async throws {
        let session = try idleSession()
        let scope = session.canceller.open()
        try await withTaskCancellationHandler {
            defer { self.close(session.canceller) }
            try Task.checkCancellation()
            try self.begin(session, sql, parameters, limit)
            // Every exit ends the stream, so that the connection stays usable.
            defer { session.abandonStream() }
            while let chunk = try self.fill(session, sql, limit, makeChunk, row) {
                try await deliver(chunk)
                try Task.checkCancellation()
            }
        } onCancel: { [canceller = session.canceller] in
            canceller.cancel(scope: scope)
        }
    }

    private func begin(_ session: PostgresSession, _ sql: String, _ parameters: [PostgresParameter], _ limit: Duration?) throws {
        executor.checkIsolated()
        try session.beginStream(sql, parameters, limit)
    }

    /// Returns the next chunk, or nil at the end of the stream.
    private func fill<Chunk>(
        _ session: PostgresSession, _ sql: String, _ limit: Duration?, _ makeChunk: () -> Chunk,
        _ row: (PostgresRow, inout Chunk) throws -> Bool
    ) throws -> Chunk? {
        executor.checkIsolated()
        guard session.isStreaming else { return nil }
        var chunk = makeChunk()
        var isEmpty = true
        _ = try session.continueStream(sql, limit) { lent in
            isEmpty = false
            return try row(lent, &chunk)
        }
        return isEmpty ? nil : chunk
    }

    /// Runs the body in a transaction on this connection. It commits when the body returns, and rolls back when the body throws or
    /// the task is cancelled.
    package nonisolated(nonsending) func inTransaction<R>(
        _ mode: TransactionMode = .readCommitted, _ body: nonisolated(nonsending) () async throws -> R
    ) async throws -> R {
        try await query(mode.rawValue)
        let result: R
        do {
            result = try await body()
        } catch {
            await rollback()
            throw error
        }
        do {
            try await withSession { try $0.commit() }
        } catch {
            await rollback()
            throw error
        }
        return result
    }

    func rollback() { opened?.rollback() }

    private func idleSession() throws -> PostgresSession {
        guard let opened else { throw PostgresError(.postgresUnreachable, "The connection has been closed.") }
        if opened.isStreaming {
            throw PostgresError(
                .postgresStatement, "A statement cannot run while the rows of another are being read from the same connection.",
                fix: "Use another connection of the pool.")
        }
        return opened
    }
}

/// A serial Dispatch queue as an actor's executor. Blocking calls of the actor block this queue, but no thread of the cooperative
/// pool.
package final class QueueExecutor: SerialExecutor {
    package let queue: DispatchQueue

    package init(_ label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedSerialExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
