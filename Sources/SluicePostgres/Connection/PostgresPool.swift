import Dispatch
import SluiceCore
import Synchronization

/// A bounded number of connections to one database, each lent for the length of a closure.
///
/// If none is free, a borrower waits in line for at most its limit. Then it receives `timeout` with the pool's name and size. A
/// broken connection is replaced, and an open transaction is rolled back before the next borrower.
package final class PostgresPool: Sendable {
    private typealias Grant = PoolGrant<PostgresConnection>
    private typealias Waiter = CheckedContinuation<Grant, any Error>
    private typealias Machine = PoolStateMachine<PostgresConnection, Waiter>

    package let name: String
    package let size: Int
    private let conninfo: String
    private let statementLimit: Duration
    private let state: Mutex<Machine>
    private let numbers = Atomic<UInt64>(0)
    /// The statements that run together with those of concurrent callers. Most take a millisecond, so few run beside others: a run of many
    /// costs little more than one of one. A run that waits for a lock delays no other for long.
    let shared = RequestCoalescer<PostgresStatement, PostgresResult>(width: 2, most: 64, gathering: .milliseconds(5))

    /// Creates a pool without opening a connection.
    ///
    /// - Parameters:
    ///   - size: The maximum number of connections, at least 1. They are opened on demand.
    ///   - statementLimit: The time limit of statements that specify none.
    package init(
        _ conninfo: String, name: String = "postgres", size: Int = 8, statementLimit: Duration = PostgresConnection.statementLimit
    ) {
        self.conninfo = conninfo
        self.statementLimit = statementLimit
        self.name = name
        self.size = max(1, size)
        state = Mutex(Machine(size: max(1, size)))
    }

    /// Lends a connection to the body. Do not nest calls: the inner one may wait for a connection that the outer one holds.
    ///
    /// - Parameter limit: The maximum wait for a connection, and the maximum time for opening one.
    package nonisolated(nonsending) func withConnection<R>(
        within limit: Duration = .seconds(10), _ body: nonisolated(nonsending) (PostgresConnection) async throws -> R
    ) async throws -> R {
        let connection = try await borrow(limit)
        do {
            let result = try await body(connection)
            await giveBack(connection)
            return result
        } catch {
            await giveBack(connection)
            throw error
        }
    }

    /// Runs the body on a connection's queue. Equals `withConnection` with the connection's `withSession`, for a third of the
    /// thread hops.
    package func withSession<R: Sendable>(
        within limit: Duration = .seconds(10), _ body: @Sendable (PostgresSession) throws -> R
    ) async throws -> R {
        var connection = try await borrow(limit, checks: false)
        while true {
            switch await connection.lend(body) {
            case .done(let result):
                await giveBackTidy(connection)
                return try result.get()
            case .broke(let result):
                await connection.close()
                discard()
                return try result.get()
            case .wasClosed:
                // The body has not run, so a new connection may run it.
                await connection.close()
                connection = try await open(limit)
            }
        }
    }

    /// Closes idle connections now and lent ones on their return; later calls throw `shuttingDown`.
    package func close() async {
        let (connections, waiters) = state.withLock { $0.close() }
        for waiter in waiters { waiter.resume(throwing: refusal) }
        for connection in connections { await connection.close() }
    }

    /// The number of borrowers that wait in line.
    package var waiting: Int { state.withLock(\.waiting) }

    /// Returns a connection, or opens one.
    ///
    /// - Parameter checks: `true` to replace a connection that the server has closed.
    private func borrow(_ limit: Duration, checks: Bool = true) async throws -> PostgresConnection {
        let grant: Grant
        switch state.withLock({ $0.acquire() }) {
        case .grant(let granted): grant = granted
        case .refuse: throw refusal
        case .wait: grant = try await wait(limit)
        }
        if case .use(let connection) = grant {
            // `lend` checks the connection in its own hop.
            guard checks else { return connection }
            if await connection.isUsable { return connection }
            await connection.close()
        }
        return try await open(limit)
    }

    /// Opens a connection in place of one that the state machine already counts.
    private func open(_ limit: Duration) async throws -> PostgresConnection {
        do {
            return try await PostgresConnection.connect(conninfo, within: limit, statementLimit: statementLimit)
        } catch {
            discard()
            throw error
        }
    }

    private func wait(_ limit: Duration) async throws -> Grant {
        let id = numbers.add(1, ordering: .relaxed).newValue
        defer { state.withLock { $0.forget(id) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: Waiter) in
                switch state.withLock({ $0.enqueue(id, waiter, within: limit, now: .now) }) {
                case .waits(let look): if let look { expire(at: look) }
                case .grant(let grant): waiter.resume(returning: grant)
                case .cancelled: waiter.resume(throwing: CancellationError())
                case .refuse: waiter.resume(throwing: refusal)
                }
            }
        } onCancel: {
            state.withLock { $0.cancel(id) }?.resume(throwing: CancellationError())
        }
    }

    /// Ends expired waits at `look`, and schedules the next such call.
    private func expire(at look: ContinuousClock.Instant) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int((look - .now).pollMilliseconds))) { [weak self] in
            guard let self else { return }
            let (waiters, next) = state.withLock { $0.expire(at: look) }
            for (waiter, limit) in waiters { waiter.resume(throwing: busy(for: limit)) }
            if let next { expire(at: next) }
        }
    }

    private func busy(for limit: Duration) -> PostgresError {
        PostgresError(
            .timeout, "All \(size) connections of the pool “\(name)” stayed busy for \(limit).",
            fix: "Raise the pool's size, or find the slow statements.")
    }

    private func giveBack(_ connection: PostgresConnection) async {
        guard await connection.tidy() else {
            await connection.close()
            return discard()
        }
        await giveBackTidy(connection)
    }

    private func giveBackTidy(_ connection: PostgresConnection) async {
        let (waiter, close) = state.withLock { $0.release(connection) }
        waiter?.resume(returning: .use(connection))
        if close { await connection.close() }
    }

    private func discard() { state.withLock { $0.discard() }?.resume(returning: .open) }

    private var refusal: PostgresError { PostgresError(.shuttingDown, "The pool “\(name)” has been closed.") }
}
