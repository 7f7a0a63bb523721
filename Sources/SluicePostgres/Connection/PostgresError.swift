package import SluiceCore

/// The error of all calls in this module.
///
/// Beside the error for users it holds the SQLSTATE, the constraint, and whether the statement may have taken effect. Ports throw
/// `asSluiceError`, whose cause has the SQLSTATE.
package struct PostgresError: SluiceErrorConvertible, Hashable, Sendable, CustomStringConvertible {
    package var asSluiceError: SluiceError
    /// The five characters of the server's SQLSTATE; nil if the server did not answer.
    package var sqlState: String?
    /// The constraint, schema, table and column that the server named.
    package var constraint: String?
    package var schema: String?
    package var table: String?
    package var column: String?
    /// `true` if the connection broke, or the server did not answer in time, while the statement ran. A commit may have happened,
    /// and a caller that depends on it must check.
    package var mayHaveTakenEffect: Bool

    /// - Parameters:
    ///   - message: The text for operators; it may contain hosts, statements and values.
    ///   - cause: The words of the server or of libpq.
    ///   - clientMessage: The text for clients unless the code is internal; nil for the code's meaning.
    package init(
        _ code: ErrorCode, _ message: String, fix: String? = nil, cause: ErrorCause? = nil, sqlState: String? = nil,
        mayHaveTakenEffect: Bool = false, clientMessage: String? = nil
    ) {
        let error = SluiceError(code, message, fix: fix, cause: cause)
        asSluiceError =
            code.isInternal ? error : SluiceError(code, clientMessage ?? code.meaning, fix: fix, cause: .error(error))
        self.sqlState = sqlState
        self.mayHaveTakenEffect = mayHaveTakenEffect
    }

    package var code: ErrorCode { asSluiceError.code }
    /// The message for operators, with the causes.
    package var message: String { asSluiceError.operatorText }
    /// The failure's own advice, or that of its code.
    package var fix: String { asSluiceError.fix ?? code.fix }
    /// The message, and the failure's own advice if it has one. That of the code follows a list of failures once.
    package var messageWithFix: String { asSluiceError.fix.map { "\(message) \($0)" } ?? message }
    package var description: String { asSluiceError.description }

    /// `true` if the same work may succeed when it is repeated from its start, on a new connection if this one broke.
    package var isRetriable: Bool {
        code.isTemporary || sqlState.flatMap { ErrorRecovery(sqlState: $0) } == .wait
    }

    /// `true` if a constraint rejected the row, a value did not fit its column, or it exceeded a limit of an index or the server.
    package var isRefusedValue: Bool {
        guard let sqlState else { return false }
        return sqlState.hasPrefix("23") || sqlState.hasPrefix("22") || sqlState.hasPrefix("54")
    }

    /// `true` if an app's trigger or function raised the error, or a view's check option did: its code is not in the server's
    /// classes.
    package var isRaised: Bool { sqlState.map { !Self.serverClasses.contains(String($0.prefix(2))) } ?? false }

    /// The classes of PostgreSQL's own codes. Those that triggers and functions raise are omitted: P0 (PL/pgSQL), 21 (more than one
    /// row), 2F, 38 and 39 (routines), 44 (check option).
    private static let serverClasses: Set<String> = [
        "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "22", "23", "24", "25", "26", "27", "28",
        "2B", "2D", "34", "3B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "72", "F0", "HV", "XX",
    ]

    /// `true` if a write without result rows, or a COMMIT, was rejected. Neither has a plan that could be stale, so a trigger
    /// raised 0A000 (feature not supported).
    package var isRefusedWrite: Bool { isRefusedValue || isRaised || sqlState == "0A000" }

    /// `true` if a column takes only values that the server computes or takes from a sequence.
    package var isRefusedColumn: Bool { sqlState == "428C9" }

    /// `true` if the server ended the statement, for example by `statement_timeout`. The statement may have waited for a lock.
    package var isOutOfTime: Bool { sqlState == "57014" }

    /// `true` if a write without result rows will fail again, such as for a trigger with a code of its own.
    ///
    /// Excluded are system errors (58), damaged pages (XX001, XX002) and a missing prepared statement (26000).
    package var isLasting: Bool {
        guard let sqlState, !isRetriable else { return false }
        return !sqlState.hasPrefix("58") && !["26000", "XX001", "XX002"].contains(sqlState)
    }

    /// `true` if a table changed under a prepared statement, or the statement was deallocated. It may succeed after a new
    /// preparation.
    package var isStalePlan: Bool { sqlState == "0A000" || sqlState == "26000" }

    /// Returns the error that a port throws: the `SluiceError` of a failure, every other error unchanged.
    package static func forPort(_ error: any Error) -> any Error {
        (error as? PostgresError)?.asSluiceError ?? error
    }
}

extension PostgresError {
    /// Runs the body and translates errors of PostgreSQL into `SluiceError`.
    package static func translating<R>(_ body: () async throws -> R) async throws -> R {
        do {
            return try await body()
        } catch {
            throw forPort(error)
        }
    }
}
