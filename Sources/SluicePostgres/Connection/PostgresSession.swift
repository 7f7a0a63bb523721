import CLibPQ
import SluiceCore

/// A blocking connection for use inside the queue of a `PostgresConnection`. It is not thread-safe.
///
/// A batch of statements through `PostgresConnection.withSession` costs one hop to the queue instead of one each. Every call has a
/// time limit. When it passes, the statement is cancelled and the call throws `timeout`. If the server does not react to the
/// cancellation, the connection is broken and the call throws `postgresUnreachable`.
@safe
package final class PostgresSession {
    var handle: OpaquePointer
    let canceller: StatementCanceller
    /// The connection's name in errors: `host:port/database`.
    package let name: String
    package private(set) var isBroken = false
    /// The time limit of calls that specify none.
    package var limit = PostgresConnection.statementLimit
    var isStreaming = false
    var parameters = ParameterBuffer()
    private var prepared: [String: String] = [:]
    /// The number of statements prepared so far. A name is never reused, because a forgotten statement may still exist on the
    /// server.
    private var preparations = 0
    private static let preparedBound = 256
    /// The number of runs of prepared statements since all plans were discarded.
    private var plannedRuns = 0
    /// The number of runs after which all plans are discarded.
    ///
    /// A plan made while a table was small is kept until the table's statistics are renewed, a minute later or never. A quickly
    /// growing table would be scanned in full for each row meanwhile.
    package static let plannedBound = 2_000

    /// Connects, and applies the settings that this module relies on.
    ///
    /// They are UTC, ISO dates and intervals, hexadecimal bytea, floats that read back the same, and commits that wait for the disk.
    package init(_ conninfo: String, replication: Bool = false, within limit: Duration = .seconds(10)) throws {
        (unsafe handle, name) = try unsafe ConnectionOpener.open(conninfo, replication: replication, within: limit)
        canceller = unsafe StatementCanceller(connection: handle)
        unsafe PQsetNoticeReceiver(handle, ignoreNotice, nil)
        // All waits go through `SocketWait` and have a deadline.
        unsafe PQsetnonblocking(handle, 1)
        try script(
            """
            SET TIME ZONE 'UTC'; SET DateStyle = 'ISO, MDY'; SET bytea_output = 'hex'; SET IntervalStyle = 'iso_8601';
            SET extra_float_digits = 1; SET client_min_messages = 'warning';
            SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
            """, within: limit)
    }

    deinit { unsafe PQfinish(handle) }

    /// `true` if a transaction is open, including a failed one.
    package var isInTransaction: Bool {
        unsafe [PQTRANS_INTRANS, PQTRANS_INERROR].contains(PQtransactionStatus(handle))
    }

    /// The parameters that lead a client to the same database as the same role, without a password. A host may be a socket's folder.
    package var address: [(keyword: String, value: String)] {
        let known: [(String, String?)] = [
            ("host", unsafe PQhost(handle).map { unsafe String(cString: $0) }),
            ("port", unsafe PQport(handle).map { unsafe String(cString: $0) }),
            ("dbname", unsafe PQdb(handle).map { unsafe String(cString: $0) }),
            ("user", unsafe PQuser(handle).map { unsafe String(cString: $0) }),
        ]
        return known.compactMap { keyword, value in value.flatMap { $0.isEmpty ? nil : (keyword, $0) } }
    }

    package var processIdentifier: Int { unsafe Int(PQbackendPID(handle)) }

    /// Returns a setting that the server reports unasked, such as `server_encoding`; nil if it does not.
    package func reported(_ setting: String) -> String? {
        unsafe PQparameterStatus(handle, setting).map { unsafe String(cString: $0) }
    }

    /// Runs one statement and returns its rows in text form.
    ///
    /// - Parameter cached: `true` to prepare the statement once per connection. For texts that recur, not for texts with values in
    ///   them.
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

    /// Runs one statement and returns the number of rows that it affected.
    @discardableResult
    package func execute(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil
    ) throws -> Int {
        try query(sql, parameters, cached: cached, within: limit).affected
    }

    /// Runs several statements separated by semicolons, without parameters. They are one transaction unless they contain its
    /// commands.
    ///
    /// - Returns: The result of the last statement.
    @discardableResult
    package func script(_ sql: String, within limit: Duration? = nil) throws -> PostgresResult {
        let deadline = try begin(sql, limit)
        guard unsafe PQsendQuery(handle, sql) == 1 else { throw broke(sql) }
        return try finish(sql, deadline)
    }

    /// Rejects parameters that cannot be sent. Every sender must call it first.
    func check(_ sql: String, _ parameters: [PostgresParameter]) throws {
        guard let index = parameters.firstIndex(where: \.hasNUL) else { return }
        throw PostgresError(
            .badRequest,
            "Parameter $\(index + 1) of “\(sql.shortened)” contains a NUL character, which PostgreSQL cannot store (SQLSTATE 22021).",
            fix: "Leave it out.", sqlState: "22021", clientMessage: "A text contains a NUL character, which cannot be stored.")
    }

    func send(_ sql: String, _ parameters: [PostgresParameter], _ call: (ParameterBuffer.Lent) -> Int32) throws {
        self.parameters.fill(parameters)
        guard unsafe self.parameters.withLent({ unsafe call($0) }) == 1 else { throw broke(sql) }
    }

    /// Returns the name of the prepared statement for a text. Prepares it if necessary.
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
        // A failed transaction accepts only its end.
        guard unsafe PQtransactionStatus(handle) != PQTRANS_INERROR else { return }
        guard unsafe PQsendQuery(handle, "DISCARD PLANS") == 1 else { throw broke("DISCARD PLANS") }
        _ = try finish("DISCARD PLANS", deadline)
        plannedRuns = 0
    }

    /// Ensures that `count` statements can be prepared without one of them deallocating another.
    func makeRoom(for count: Int, _ deadline: ContinuousClock.Instant) throws {
        guard prepared.count + count > Self.preparedBound else { return }
        guard unsafe PQsendQuery(handle, "DEALLOCATE ALL") == 1 else { throw broke("DEALLOCATE ALL") }
        _ = try finish("DEALLOCATE ALL", deadline)
        prepared.removeAll()
    }

    /// Removes a statement with a stale plan, so that its next run prepares it again.
    func forget(_ sql: String, after error: any Error) {
        if (error as? PostgresError)?.isStalePlan == true { prepared[sql] = nil }
    }

    /// Records that the connection cannot be used any more.
    func markBroken() { isBroken = true }
}

/// Ignores PostgreSQL's notices, which are for interactive users. Errors arrive with the results.
private func ignoreNotice(_ context: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {}

extension String {
    /// The text on one line, cut after 200 characters, for errors.
    var shortened: String {
        let words = split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.utf8.count <= 200 ? words : words.prefix(200) + "…"
    }
}
