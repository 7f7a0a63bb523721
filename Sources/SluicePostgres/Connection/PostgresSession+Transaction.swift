import SluiceCore

/// How a transaction begins.
package enum TransactionMode: String, Sendable {
    case readCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"
    case repeatableRead = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    case serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE"
    /// A snapshot for reading.
    case readOnly = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

extension PostgresSession {
    /// Runs the body in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// When COMMIT itself fails with `mayHaveTakenEffect`, the outcome is unknown.
    package func inTransaction<R>(_ mode: TransactionMode = .readCommitted, _ body: () throws -> R) throws -> R {
        try query(mode.rawValue)
        let result: R
        do {
            result = try body()
        } catch {
            rollback()
            throw error
        }
        try commit()
        return result
    }

    /// Commits; a transaction that had failed before ends in an error instead of PostgreSQL's silent rollback.
    func commit() throws {
        let result = try query("COMMIT")
        if result.tag != "COMMIT" { throw rolledBack }
    }

    var rolledBack: PostgresFailure {
        PostgresFailure(
            .postgresStatement, "The transaction on \(name) had failed before its COMMIT and was rolled back.", sqlState: "25P02")
    }

    /// Rolls back whatever is open, also for a cancelled task; a connection that cannot even do that is broken.
    func rollback() {
        abandonStream()
        guard !isBroken, isInTransaction else { return }
        guard canceller.settle() else { return markBroken() }
        let isCancelled = canceller.isRequested
        if isCancelled { canceller.forget() }
        do { try script("ROLLBACK", within: .seconds(5)) } catch { markBroken() }
        if isCancelled { canceller.remember() }
    }
}
