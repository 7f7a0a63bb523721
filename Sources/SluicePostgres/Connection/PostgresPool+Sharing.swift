extension PostgresPool {
    /// Runs a statement in one round trip, and one commit, with those that others ask for at the same time.
    ///
    /// For quick statements alone that wait for nobody's lock: each has its answer when all have. One that the server refuses is
    /// refused alone. Failures come out as `SluiceError`.
    package func share(_ statement: PostgresStatement) async throws -> PostgresResult {
        do {
            return try await shared.ask(statement) { await self.run($0) }
        } catch {
            throw PostgresFailure.forPort(error)
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
                    // Where the server has refused one, none of them has taken effect.
                    guard statements.count > 1, (error.error as? PostgresFailure)?.sqlState != nil, !session.isBroken else {
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
