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
        return try completeTransaction(body)
    }

    /// The same with a first statement that costs no round trip of its own; the body has its result.
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

    /// A transaction in two round trips: a first statement, and those that come of its result together with the COMMIT.
    ///
    /// - Parameter row: is lent each row of the others as it comes, with the number of its statement.
    /// - Throws: `PipelineFailure` with the number of the one that failed, when it was one of the others.
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
