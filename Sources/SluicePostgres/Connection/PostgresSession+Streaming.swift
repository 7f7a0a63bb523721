import CLibPQ
import SluiceCore

extension PostgresSession {
    /// Runs a SELECT and lends each row as it arrives; memory does not grow with the number of rows.
    ///
    /// When `row` throws, the statement is cancelled and the error comes back.
    /// - Parameter cached: as in `query`.
    package func stream(
        _ sql: String, _ parameters: [PostgresParameter] = [], cached: Bool = false, within limit: Duration? = nil,
        row: (PostgresRow) throws -> Void
    ) throws {
        try beginStream(sql, parameters, cached: cached, limit)
        while try continueStream(
            sql, limit,
            row: {
                try row($0)
                return false
            })
        {}
    }

    /// Sends the statement of a stream. `continueStream` or `abandonStream` must follow until the stream is over.
    func beginStream(_ sql: String, _ parameters: [PostgresParameter], cached: Bool = false, _ limit: Duration?) throws {
        let deadline = try begin(sql, limit)
        try check(sql, parameters)
        let statement = cached ? try prepare(sql, deadline) : nil
        try unsafe send(sql, parameters) { lent in
            guard let statement else {
                return unsafe PQsendQueryParams(handle, sql, lent.count, lent.types, lent.values, lent.lengths, lent.formats, 0)
            }
            return unsafe PQsendQueryPrepared(handle, statement, lent.count, lent.values, lent.lengths, lent.formats, 0)
        }
        guard unsafe PQsetSingleRowMode(handle) == 1 else { throw broke(sql) }
        isStreaming = true
    }

    /// Lends rows until `row` returns true, or there are no more.
    ///
    /// The limit holds for each wait, not for the whole: the consumer's time does not count.
    /// - Returns: whether there may be more.
    func continueStream(_ sql: String, _ limit: Duration?, row: (PostgresRow) throws -> Bool) throws -> Bool {
        do {
            while let result = unsafe try nextResult(sql, .now + (limit ?? self.limit)) {
                defer { unsafe PQclear(result) }
                if let failure = unsafe failure(of: result, sql) { throw failure }
                guard unsafe PQresultStatus(result) == PGRES_SINGLE_TUPLE else { continue }
                if try unsafe row(PostgresRow(handle: result, row: 0)) { return true }
            }
            isStreaming = false
            return false
        } catch {
            forget(sql, after: error)
            abandonStream()
            throw error
        }
    }

    /// Ends a stream early.
    func abandonStream() {
        guard isStreaming else { return }
        isStreaming = false
        if isBroken { return }
        canceller.send()
        drain()
        if !canceller.settle() { markBroken() }
    }
}
