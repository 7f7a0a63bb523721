extension PostgresPool {
    /// Runs a statement in one round trip, and one commit, with those of concurrent callers.
    ///
    /// For single quick statements that wait for no lock: each has its answer only when all have. If the server rejects one, each
    /// runs again alone. Failures are thrown as `SluiceError`.
    package func share(_ statement: PostgresStatement) async throws -> PostgresResult {
        do {
            return try await shared.ask(statement) { await self.run($0) }
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    private func run(_ statements: [PostgresStatement]) async -> Gathered<PostgresResult> {
        do {
            return try await withSession { session in
                let begin = ContinuousClock.now
                do throws(PipelineFailure) {
                    let answers = try session.pipeline(statements)
                    return Gathered(answers: answers.map { .success($0) }, duration: .now - begin)
                } catch {
                    // The pipeline is one implicit transaction: if the server rejected one statement, none has taken effect.
                    guard statements.count > 1, (error.error as? PostgresError)?.sqlState != nil, !session.isBroken else {
                        throw error.error
                    }
                    return Gathered(
                        answers: statements.map { statement in
                            Result { try session.query(statement.sql, statement.parameters, cached: true) }
                        })
                }
            }
        } catch {
            return Gathered(answers: statements.map { _ in .failure(error) })
        }
    }
}
