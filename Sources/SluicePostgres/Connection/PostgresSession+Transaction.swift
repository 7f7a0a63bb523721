import SluiceCore

/// The isolation with which a transaction begins.
package enum TransactionMode: String, Sendable {
    case readCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"
    /// A read-only snapshot.
    case readOnly = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

extension PostgresSession {
    /// Runs the body in a transaction. It commits when the body returns, and rolls back when the body throws.
    ///
    /// If COMMIT itself fails with `mayHaveTakenEffect`, the outcome is unknown.
    package func inTransaction<R>(_ mode: TransactionMode = .readCommitted, _ body: () throws -> R) throws -> R {
        try query(mode.rawValue)
        return try completeTransaction(body)
    }

    /// Runs a transaction whose first statement shares the round trip of BEGIN. The body receives its result.
    package func inTransaction<R>(
        _ mode: TransactionMode, first statement: PostgresStatement, _ body: (PostgresResult) throws -> R
    ) throws -> R {
        let results: [PostgresResult]
        do throws(PipelineFailure) {
            results = try pipeline([PostgresStatement(mode.rawValue), statement])
        } catch {
            rollback()
            throw error.error
        }
        return try completeTransaction { try body(results[1]) }
    }

    /// Runs a transaction in two round trips: a first statement, then the statements derived from its result with the COMMIT.
    ///
    /// - Parameter row: Receives each row of the derived statements as it arrives, with the index of its statement.
    /// - Throws: `PipelineFailure` with the index of the statement, if a derived statement or the COMMIT failed.
    package func inTransaction(
        _ mode: TransactionMode, first statement: PostgresStatement, then others: (PostgresResult) throws -> [PostgresStatement],
        row: (Int, PostgresRow) -> Void
    ) throws {
        do {
            let first: PostgresResult
            do throws(PipelineFailure) {
                first = try pipeline([PostgresStatement(mode.rawValue), statement])[1]
            } catch {
                throw error.error
            }
            let statements = try others(first)
            let results = try withoutActuallyEscaping(row) {
                try pipeline(statements + [PostgresStatement("COMMIT")], row: $0)
            }
            // PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK.
            if results.last?.tag != "COMMIT" { throw rolledBack }
        } catch {
            rollback()
            throw error
        }
    }

    private func completeTransaction<R>(_ body: () throws -> R) throws -> R {
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

    /// Commits. For a transaction that had failed before, it throws an error instead of PostgreSQL's silent rollback.
    func commit() throws {
        let result = try query("COMMIT")
        if result.tag != "COMMIT" { throw rolledBack }
    }

    var rolledBack: PostgresError {
        PostgresError(
            .postgresStatement, "The transaction on \(name) had failed before its COMMIT and was rolled back.", sqlState: "25P02")
    }

    /// Rolls back an open transaction, even for a cancelled task. If the server does not do so, the connection is broken.
    func rollback() {
        abandonStream()
        guard !isBroken, isInTransaction else { return }
        // A cancel request in flight would hit the ROLLBACK.
        guard canceller.settle() else { return markBroken() }
        // A requested cancellation would prevent the ROLLBACK, so it is suspended and restored.
        let isCancelled = canceller.isRequested
        if isCancelled { canceller.forget() }
        do { try script("ROLLBACK", within: .seconds(5)) } catch { markBroken() }
        if isCancelled { canceller.remember() }
    }
}
