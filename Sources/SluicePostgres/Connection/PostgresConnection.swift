import SluiceCore

/// A connection to PostgreSQL on a queue of its own; calls run one after another.
///
/// Cancelling the calling task cancels the statement on the server and ends the call in `CancellationError`.
/// Other failures are `PostgresFailure`s. Transactions belong to the connection, not to a task: share a connection
/// between tasks only through a `PostgresPool`.
package actor PostgresConnection {
    private nonisolated let executor: QueueExecutor
    private var opened: PostgresSession?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private init(_ executor: QueueExecutor) { self.executor = executor }

    /// Connects. `conninfo` is libpq's: `host=… port=… dbname=… user=… password=…` or a `postgresql://` URI.
    ///
    /// Ends in `postgresUnreachable` when the server does not answer within the limit or refuses, and in `configInvalid`
    /// when the string cannot be read. No error shows the password.
    package static func connect(_ conninfo: String, within limit: Duration = .seconds(10)) async throws -> PostgresConnection {
        let connection = PostgresConnection(QueueExecutor("sluice.postgres"))
        try await connection.open(conninfo, limit)
        return connection
    }

    private func open(_ conninfo: String, _ limit: Duration) throws {
        opened = try PostgresSession(conninfo, within: limit)
    }

    /// Ends the connection; later calls fail. Dropping the last reference does the same.
    package func close() { opened = nil }

    /// Whether further statements make sense.
    package var isUsable: Bool { opened.map { !$0.isBroken && !$0.hasClosed } ?? false }

    /// Gives the connection back to a clean state; false when that is not possible.
    func tidy() -> Bool {
        guard let opened else { return false }
        opened.rollback()
        opened.limit = .seconds(30)
        return !opened.isBroken
    }

    /// Runs one statement and returns its rows. `cached` prepares the text once per connection.
    @discardableResult
    package func query(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) async throws -> PostgresResult {
        try await withSession { try $0.query(sql, parameters, cached: cached, within: limit) }
    }

    /// Runs one statement and returns the number of rows it touched.
    @discardableResult
    package func execute(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) async throws -> Int {
        try await withSession { try $0.execute(sql, parameters, cached: cached, within: limit) }
    }

    /// Runs several statements separated by semicolons; no parameters. - Returns: the result of the last.
    @discardableResult
    package func script(_ sql: String, within limit: Duration? = nil) async throws -> PostgresResult {
        try await withSession { try $0.script(sql, within: limit) }
    }

    /// Runs `COPY … FROM STDIN` with the given pieces of data. - Returns: the number of rows copied.
    @discardableResult
    package func copyIn(_ sql: String, _ chunks: [[UInt8]], within limit: Duration? = nil) async throws -> Int {
        try await withSession { try $0.copyIn(sql, within: limit, chunks) }
    }

    /// Runs the body on the connection's queue, where statements are plain blocking calls: one hop for many statements.
    ///
    /// Nothing else may be waited for in there.
    package func withSession<R: Sendable>(_ body: @Sendable (PostgresSession) throws -> R) async throws -> R {
        let session = try idleSession()
        let scope = session.canceller.open()
        // The closure must capture `self`: it is isolated to this actor only if it does, and would otherwise leave the
        // queue and block a thread of the cooperative pool.
        return try await withTaskCancellationHandler {
            try self.run(session, body)
        } onCancel: { [canceller = session.canceller] in
            canceller.cancel(scope: scope)
        }
    }

    /// What came of lending a session to a pool's borrower.
    enum Lent<R: Sendable>: Sendable {
        case done(Result<R, any Error>)
        /// The same, and the connection cannot be used again.
        case broke(Result<R, any Error>)
        /// The server had ended the connection before; the body has not run.
        case wasClosed
    }

    /// `isUsable`, `withSession` and `tidy` for the price of one hop.
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

    private func close(_ canceller: StatementCanceller) {
        if !canceller.close() { opened?.markBroken() }
    }

    /// Runs a SELECT of any size in pieces: `row` fills a chunk on the connection's queue and returns true when it is
    /// full; `deliver` takes it, and the next rows are read only when it returns.
    ///
    /// No other statement can run on this connection until the stream has ended.
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

    /// - Returns: the next chunk, or nil when the stream is over.
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

    /// Runs the body in a transaction on this connection: committed when it returns, rolled back when it throws or the
    /// task is cancelled.
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
        guard let opened else { throw PostgresFailure(.postgresUnreachable, "The connection has been closed.") }
        if opened.isStreaming {
            throw PostgresFailure(
                .postgresStatement, "A statement cannot run while the rows of another are being read from the same connection.",
                fix: "Use another connection of the pool.")
        }
        return opened
    }
}
