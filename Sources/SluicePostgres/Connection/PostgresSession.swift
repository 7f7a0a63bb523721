import CLibPQ
import SluiceCore

/// One connection, blocking: what runs inside the queue of a `PostgresConnection`. Not thread-safe and not for tasks.
///
/// A batch of statements through `PostgresConnection.withSession` costs one hop to the queue instead of one each.
/// Every call has a limit in time. When it passes, the statement is cancelled and the call ends in `timeout`; when the
/// server does not even answer that, the connection is broken and the call ends in `postgresUnreachable`.
@safe
package final class PostgresSession {
    var handle: OpaquePointer
    let canceller: StatementCanceller
    /// Whom errors name: `host:port/database`.
    package let name: String
    package private(set) var isBroken = false
    /// The limit of calls that give none of their own.
    package var limit: Duration = .seconds(30)
    var isStreaming = false
    var parameters = ParameterBuffer()
    private var prepared: [String: String] = [:]
    /// Statements prepared so far: a name is not used again, because one that was forgotten may still be there.
    private var preparations = 0
    private static let preparedBound = 256
    /// Runs of prepared statements since all of them were planned anew.
    private var plannedRuns = 0
    /// A plan that was made while a table was small is kept until its statistics are renewed, a minute later or never: a table that grows
    /// quickly would be read from end to end for each row meanwhile.
    package static let plannedBound = 2_000

    /// Connects, and sets what this module relies on: UTC, ISO dates, hexadecimal bytea, floats that read
    /// back the same, and commits that wait for the disk.
    package init(_ conninfo: String, replication: Bool = false, within limit: Duration = .seconds(10)) throws {
        (unsafe handle, name) = try unsafe ConnectionOpener.open(conninfo, replication: replication, within: limit)
        canceller = unsafe StatementCanceller(connection: handle)
        unsafe PQsetNoticeReceiver(handle, ignoreNotice, nil)
        unsafe PQsetnonblocking(handle, 1)
        try script(
            """
            SET TIME ZONE 'UTC'; SET DateStyle = 'ISO, MDY'; SET bytea_output = 'hex'; SET IntervalStyle = 'postgres';
            SET extra_float_digits = 1; SET client_min_messages = 'warning';
            SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
            """, within: limit)
    }

    deinit { unsafe PQfinish(handle) }

    /// Whether a transaction is open, failed ones included.
    package var isInTransaction: Bool {
        unsafe [PQTRANS_INTRANS, PQTRANS_INERROR].contains(PQtransactionStatus(handle))
    }

    package var serverVersion: Int { unsafe Int(PQserverVersion(handle)) }
    package var processIdentifier: Int { unsafe Int(PQbackendPID(handle)) }

    /// A setting that the server reports by itself, such as `server_encoding`; nil when it does not.
    package func reported(_ setting: String) -> String? {
        unsafe PQparameterStatus(handle, setting).map { unsafe String(cString: $0) }
    }

    /// Runs one statement and returns its rows in text form.
    ///
    /// - Parameter cached: prepares the statement once per connection: for texts that come again and again (not for
    ///   texts with values in them).
    @discardableResult
    package func query(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) throws -> PostgresResult {
        let deadline = try begin(sql, limit)
        try check(sql, parameters)
        if cached {
            let statement = try prepare(sql, deadline)
            do {
                try unsafe send(sql, parameters) { lent in
                    unsafe PQsendQueryPrepared(handle, statement, lent.count, lent.values, lent.lengths, lent.formats, 0)
                }
                return try finish(sql, deadline)
            } catch {
                forget(sql, after: error)
                throw error
            }
        }
        try unsafe send(sql, parameters) { lent in
            unsafe PQsendQueryParams(handle, sql, lent.count, lent.types, lent.values, lent.lengths, lent.formats, 0)
        }
        return try finish(sql, deadline)
    }

    /// Runs one statement and returns the number of rows it touched.
    @discardableResult
    package func execute(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) throws -> Int {
        try query(sql, parameters, cached: cached, within: limit).affected
    }

    /// Runs several statements separated by semicolons, as one transaction unless they say otherwise; no parameters.
    /// - Returns: the result of the last.
    @discardableResult
    package func script(_ sql: String, within limit: Duration? = nil) throws -> PostgresResult {
        let deadline = try begin(sql, limit)
        guard unsafe PQsendQuery(handle, sql) == 1 else { throw broke(sql) }
        return try finish(sql, deadline)
    }

    /// Refuses parameters that cannot be sent: whoever sends asks it first.
    func check(_ sql: String, _ parameters: [PostgresParameter]) throws {
        guard let index = parameters.firstIndex(where: \.hasNUL) else { return }
        throw PostgresFailure(
            .badRequest,
            "Parameter $\(index + 1) of “\(sql.shortened)” contains a NUL character, which PostgreSQL cannot store (SQLSTATE 22021).",
            fix: "Leave it out.", sqlState: "22021", clientMessage: "A text contains a NUL character, which cannot be stored.")
    }

    func send(_ sql: String, _ parameters: [PostgresParameter], _ call: (ParameterBuffer.Lent) -> Int32) throws {
        self.parameters.fill(parameters)
        guard unsafe self.parameters.withLent({ unsafe call($0) }) == 1 else { throw broke(sql) }
    }

    func prepare(_ sql: String, _ deadline: ContinuousClock.Instant) throws -> String {
        plannedRuns += 1
        if plannedRuns > Self.plannedBound { try planAnew(deadline) }
        if let name = prepared[sql] { return name }
        try makeRoom(for: 1, deadline)
        preparations += 1
        let name = "sluice_\(preparations)"
        guard unsafe PQsendPrepare(handle, name, sql, 0, nil) == 1 else { throw broke(sql) }
        _ = try finish(sql, deadline)
        prepared[sql] = name
        return name
    }

    private func planAnew(_ deadline: ContinuousClock.Instant) throws {
        // A transaction that has failed takes nothing but its end.
        guard unsafe PQtransactionStatus(handle) != PQTRANS_INERROR else { return }
        guard unsafe PQsendQuery(handle, "DISCARD PLANS") == 1 else { throw broke("DISCARD PLANS") }
        _ = try finish("DISCARD PLANS", deadline)
        plannedRuns = 0
    }

    /// Sees to it that so many statements can be prepared without one of them ending another.
    func makeRoom(for count: Int, _ deadline: ContinuousClock.Instant) throws {
        guard prepared.count + count > Self.preparedBound else { return }
        guard unsafe PQsendQuery(handle, "DEALLOCATE ALL") == 1 else { throw broke("DEALLOCATE ALL") }
        _ = try finish("DEALLOCATE ALL", deadline)
        prepared.removeAll()
    }

    /// Has a stale plan prepared afresh next time.
    func forget(_ sql: String, after error: any Error) {
        if (error as? PostgresFailure)?.isStalePlan == true { prepared[sql] = nil }
    }

    /// Notes that nothing more can be done with this connection.
    func markBroken() { isBroken = true }
}

/// What PostgreSQL says beside its answers is for people at a terminal; its errors come with the results.
private func ignoreNotice(_ context: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {}

extension String {
    /// The first words of a statement, for error texts.
    var shortened: String {
        let words = split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.utf8.count <= 200 ? words : words.prefix(200) + "…"
    }
}
