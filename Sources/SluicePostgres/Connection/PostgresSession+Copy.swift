import CLibPQ
import SluiceCore

extension PostgresSession {
    /// Runs `COPY … FROM STDIN` with chunks of data, which may be cut anywhere.
    ///
    /// - Returns: The number of copied rows.
    @discardableResult
    package func copyIn(
        _ sql: String, within limit: Duration? = nil, _ chunks: some Sequence<[UInt8]>
    ) throws -> Int {
        var iterator = chunks.makeIterator()
        return try copyIn(sql, within: limit) { iterator.next() }
    }

    /// Runs `COPY … FROM STDIN` with a source of chunks; nil ends the data. If the source throws, nothing is copied and its error
    /// is rethrown.
    @discardableResult
    package func copyIn(_ sql: String, within limit: Duration? = nil, from next: () throws -> [UInt8]?) throws -> Int {
        let deadline = try begin(sql, limit)
        guard unsafe PQsendQuery(handle, sql) == 1 else { throw broke(sql) }
        // The first result is the server's readiness for data, or its rejection.
        let first = unsafe try nextResult(sql, deadline)
        let status = unsafe PQresultStatus(first)
        let refusal = unsafe failure(of: first, sql)
        unsafe PQclear(first)
        if let refusal {
            drain()
            throw refusal
        }
        guard status == PGRES_COPY_IN else {
            drain()
            throw PostgresError(.postgresStatement, "“\(sql.shortened)” is not a COPY … FROM STDIN.")
        }
        do {
            while let chunk = try next() { try put(chunk, sql, deadline) }
        } catch {
            if !isBroken {
                // This message makes the server abort the COPY, so that the connection remains usable.
                unsafe PQputCopyEnd(handle, "the source of the data failed")
                drain()
            }
            throw error
        }
        while true {
            let sent = unsafe PQputCopyEnd(handle, nil)
            if sent < 0 { throw broke(sql) }
            if sent > 0 { break }
            try flush(sql, deadline)
        }
        return try finish(sql, deadline).affected
    }

    private func put(_ chunk: [UInt8], _ sql: String, _ deadline: ContinuousClock.Instant) throws {
        if canceller.isRequested { throw CancellationError() }
        while true {
            let sent = unsafe chunk.withUnsafeBytes { bytes in
                unsafe PQputCopyData(
                    handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(clamping: bytes.count))
            }
            if sent < 0 { throw broke(sql) }
            if sent > 0 { break }
            try flush(sql, deadline)
        }
        // libpq queues without bound, so each chunk is sent before the next one is taken.
        try flush(sql, deadline)
    }

    private func flush(_ sql: String, _ deadline: ContinuousClock.Instant) throws {
        do {
            try waitToSend(deadline)
        } catch let error as PostgresError where error.code == .timeout {
            markBroken()
            throw PostgresError(.timeout, "“\(sql.shortened)” on \(name) took longer than its limit.", mayHaveTakenEffect: false)
        } catch {
            throw broke(sql)
        }
    }
}
