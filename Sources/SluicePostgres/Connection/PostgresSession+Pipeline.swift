import CLibPQ
import SluiceCore

/// A statement and its parameters, to be run with others.
package struct PostgresStatement: Hashable, Sendable {
    package var sql: String
    package var parameters: [PostgresParameter]

    package init(_ sql: String, _ parameters: [PostgresParameter] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}

/// The failure of one of several statements, by its index. Later statements were not run.
///
/// A type beside `PostgresError`, because the failure may be a cancellation or an error of the caller's closure.
package struct PipelineFailure: Error {
    package let statement: Int
    package let error: any Error
}

extension PostgresSession {
    /// Runs statements in order in one round trip per 128, each prepared once per connection.
    ///
    /// The first failure ends the run. Outside a transaction it rolls back the statements of its round trip, but not those of
    /// earlier ones.
    /// - Parameters:
    ///   - limit: The time limit of each round trip; with `row`, of each statement.
    ///   - row: Receives each row as it arrives, with the index of its statement. The results then have no rows.
    /// - Returns: The result of each statement.
    @discardableResult
    package func pipeline(
        _ statements: [PostgresStatement], within limit: Duration? = nil, row: ((Int, PostgresRow) -> Void)? = nil
    ) throws(PipelineFailure) -> [PostgresResult] {
        var results: [PostgresResult] = []
        for start in stride(from: 0, to: statements.count, by: Self.pipelined) {
            let lend = row.map { row in { row(start + $0, $1) } }
            do throws(PipelineFailure) {
                results += try roundTrip(Array(statements[start..<min(start + Self.pipelined, statements.count)]), limit, lend)
            } catch {
                throw PipelineFailure(statement: start + error.statement, error: error.error)
            }
        }
        return results
    }

    /// The maximum number of statements of one round trip, below the number that can be prepared at once.
    private static let pipelined = 128

    private func roundTrip(
        _ statements: [PostgresStatement], _ limit: Duration?, _ row: ((Int, PostgresRow) -> Void)?
    ) throws(PipelineFailure) -> [PostgresResult] {
        let deadline = try at(0) { try begin(statements[0].sql, limit) }
        // One statement of this run must not deallocate another.
        try at(0) { try makeRoom(for: statements.count, deadline) }
        var names: [String] = []
        for (number, statement) in statements.enumerated() {
            // Checked before any is sent, because the statements before it would take effect.
            try at(number) { try check(statement.sql, statement.parameters) }
            names.append(try at(number) { try prepare(statement.sql, deadline) })
        }
        guard unsafe PQenterPipelineMode(handle) == 1 else { throw PipelineFailure(statement: 0, error: broke(statements[0].sql)) }
        var failure = queue(statements, names)
        let sent = failure?.statement ?? statements.count
        do {
            // Sent even after a failure, because the sync message ends the pipeline on the server.
            guard unsafe PQpipelineSync(handle) == 1 else { throw broke(statements[0].sql) }
            let (results, refused) = try collect(statements[..<sent], deadline, limit, row)
            if let refused { failure = refused }
            guard unsafe PQexitPipelineMode(handle) == 1 else { throw broke(statements[0].sql) }
            if failure == nil { return results }
        } catch {
            // Unread answers to these statements would be taken for answers to the next one.
            markBroken()
            throw PipelineFailure(statement: 0, error: error)
        }
        throw failure ?? PipelineFailure(statement: 0, error: broke(statements[0].sql))
    }

    private func at<R>(_ statement: Int, _ body: () throws -> R) throws(PipelineFailure) -> R {
        do { return try body() } catch { throw PipelineFailure(statement: statement, error: error) }
    }

    /// Queues the statements for sending.
    ///
    /// - Returns: The first that could not be sent.
    private func queue(_ statements: [PostgresStatement], _ names: [String]) -> PipelineFailure? {
        for (number, statement) in statements.enumerated() {
            do {
                try unsafe send(statement.sql, statement.parameters) { lent in
                    unsafe PQsendQueryPrepared(handle, names[number], lent.count, lent.values, lent.lengths, lent.formats, 0)
                }
            } catch {
                return PipelineFailure(statement: number, error: error)
            }
        }
        return nil
    }

    /// Reads the answers to the sent statements, and the sync message that ends them.
    private func collect(
        _ statements: ArraySlice<PostgresStatement>, _ deadline: ContinuousClock.Instant, _ limit: Duration?,
        _ row: ((Int, PostgresRow) -> Void)?
    ) throws -> (results: [PostgresResult], failure: PipelineFailure?) {
        var results: [PostgresResult] = []
        var failure: PipelineFailure?
        for (number, statement) in statements.enumerated() {
            var deadline = deadline
            if row != nil, failure == nil {
                // Single-row mode applies to one statement, so it is set for each.
                guard unsafe PQsetSingleRowMode(handle) == 1 else { throw broke(statement.sql) }
                deadline = .now + (limit ?? self.limit)
            }
            // libpq returns nil once after each statement's result.
            while let result = unsafe try nextResult(statement.sql, deadline) {
                if let row, unsafe PQresultStatus(result) == PGRES_SINGLE_TUPLE {
                    unsafe row(number, PostgresRow(handle: result, row: 0))
                    unsafe PQclear(result)
                    continue
                }
                if failure == nil, let error = unsafe self.failure(of: result, statement.sql) {
                    failure = PipelineFailure(statement: number, error: error)
                    forget(statement.sql, after: error)
                }
                unsafe results.append(PostgresResult(result))
            }
        }
        let end = unsafe try nextResult("the end of a pipeline", max(deadline, .now + .seconds(1)))
        defer { unsafe PQclear(end) }
        guard unsafe PQresultStatus(end) == PGRES_PIPELINE_SYNC else { throw broke("the end of a pipeline") }
        return (results, failure)
    }
}
