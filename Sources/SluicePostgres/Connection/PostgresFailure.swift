package import SluiceCore

/// The error of everything in this module that talks to PostgreSQL: the error as users meet it, and what a program needs
/// to decide on: the SQLSTATE, the constraint, whether trying again may help, whether the statement may have happened.
///
/// Ports that speak `SluiceError` throw `asSluiceError`; the SQLSTATE is part of its message.
package struct PostgresFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package var asSluiceError: SluiceError
    /// The five characters of the server's answer; nil when there was none.
    package var sqlState: String?
    /// The constraint, schema, table and column the server named.
    package var constraint: String?
    package var schema: String?
    package var table: String?
    package var column: String?
    /// True when the connection broke or the deadline passed while the statement was under way: a commit may have
    /// happened, and who needs to know has to look.
    package var mayHaveTakenEffect: Bool

    /// - Parameters:
    ///   - message: for operators; it may name hosts, statements and values.
    ///   - clientMessage: for clients, where the code is not internal; the code's meaning when nil.
    package init(
        _ code: ErrorCode, _ message: String, fix: String? = nil, sqlState: String? = nil, mayHaveTakenEffect: Bool = false,
        clientMessage: String? = nil
    ) {
        asSluiceError =
            code.isInternal
            ? SluiceError(code, message, fix: fix) : SluiceError(code, clientMessage ?? code.meaning, fix: fix, detail: message)
        self.sqlState = sqlState
        self.mayHaveTakenEffect = mayHaveTakenEffect
    }

    package var code: ErrorCode { asSluiceError.code }
    /// For operators.
    package var message: String { asSluiceError.detail ?? asSluiceError.message }
    /// Its own advice, or the code's.
    package var fix: String { asSluiceError.fix ?? code.fix }
    package var description: String { asSluiceError.description }

    /// Whether the same work, begun again from its start (on a new connection where this one broke), may succeed.
    package var isRetriable: Bool {
        switch code {
        case .postgresUnreachable, .timeout, .slotBusy: return true
        default: break
        }
        guard let sqlState else { return false }
        // 40: serialization failure, deadlock; 08: connection; 53: out of resources; 57P: shutting down or starting;
        // 55P03: lock not available.
        return sqlState.hasPrefix("40") || sqlState.hasPrefix("08") || sqlState.hasPrefix("53") || sqlState.hasPrefix("57P")
            || sqlState == "55P03"
    }

    /// A unique, foreign key, check or not-null constraint refused the row, a value did not fit its column, or it was too much for an index
    /// or the server.
    package var isRefusedValue: Bool {
        guard let sqlState else { return false }
        return sqlState.hasPrefix("23") || sqlState.hasPrefix("22") || sqlState.hasPrefix("54")
    }

    /// An app's trigger or function raised it, with a class of codes of its own or one of those that only they give, or a view's check
    /// option did.
    package var isRaised: Bool { sqlState.map { !Self.serverClasses.contains(String($0.prefix(2))) } ?? false }

    /// The classes of PostgreSQL's own codes, without those of what triggers and functions do: P0 (PL/pgSQL), 21 (more than one row),
    /// 2F, 38 and 39 (routines), 44 (check option).
    private static let serverClasses: Set<String> = [
        "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "22", "23", "24", "25", "26", "27", "28",
        "2B", "2D", "34", "3B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "72", "F0", "HV", "XX",
    ]

    /// The same of a write that answers with no rows, or of a COMMIT, which have no plan that could be stale: what is not supported there
    /// (0A000) is what a trigger says.
    package var isRefusedWrite: Bool { isRefusedValue || isRaised || sqlState == "0A000" }

    /// The server ended the statement, for its `statement_timeout` for instance: it may have waited for a lock.
    package var isOutOfTime: Bool { sqlState == "57014" }

    /// The server's answer to a write without rows of which nothing is known but that it will fail again: that of a trigger with a code of
    /// its own, for instance. Not so what fails for the system's sake (58), or for damaged pages (XX001, XX002).
    package var isLasting: Bool {
        guard let sqlState, !isRetriable else { return false }
        return !sqlState.hasPrefix("58") && !["26000", "XX001", "XX002"].contains(sqlState)
    }

    /// A table changed under a prepared statement, or somebody deallocated it: prepared afresh it may succeed.
    package var isStalePlan: Bool { sqlState == "0A000" || sqlState == "26000" }

    /// What a port throws for any error of this module: the `SluiceError` of a failure, every other error unchanged.
    package static func forPort(_ error: any Error) -> any Error {
        (error as? PostgresFailure)?.asSluiceError ?? error
    }
}
