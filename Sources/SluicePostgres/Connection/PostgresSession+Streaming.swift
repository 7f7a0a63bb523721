import CLibPQ
import SluiceCore

extension PostgresSession {
    /// Runs a SELECT and passes each row as it arrives. Memory does not grow with the number of rows.
    ///
    /// If `row` throws, the statement is cancelled and the error is rethrown.
    /// - Parameter cached: See `query`.
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

    /// Sends the statement of a stream. The caller must then call `continueStream` or `abandonStream` until the stream has ended.
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

    /// Passes rows until `row` returns `true` or none is left.
    ///
    /// The limit applies to each wait, not to the whole: the consumer's time does not count.
    /// - Returns: `true` if more rows may follow.
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

    /// Ends a stream early: cancels its statement and discards the remaining rows.
    func abandonStream() {
        guard isStreaming else { return }
        isStreaming = false
        if isBroken { return }
        canceller.send()
        drain()
        if !canceller.settle() { markBroken() }
    }
}
