package import SluiceCore

/// The authority's read side: consistent snapshots, read at the reader's pace.
package struct PostgresSnapshotStore: Sendable {
    /// A row that does not fit its type; it is left out.
    package typealias ReportUnfit = @Sendable (_ type: String, _ key: String, _ reason: String) -> Void

    private let pool: PostgresPool
    private let streams: PostgresPool
    private let unfit: ReportUnfit
    let small: SmallViews
    /// How long a large view waits for those before it.
    static let streamSeconds = 60

    /// - Parameter streams: lends a connection to each large view for as long as its reader takes; nil: `pool` does. Whoever finds
    ///   none free waits for `streamSeconds`, then `timeout`.
    package init(pool: PostgresPool, streams: PostgresPool? = nil, unfit: @escaping ReportUnfit = { _, _, _ in }) {
        self.pool = pool
        self.streams = streams ?? pool
        self.unfit = unfit
        small = SmallViews(pool: pool) { row, selection, chunk in Self.append(row, selection, &chunk, unfit) }
    }

    /// Opens one read-only snapshot, hands `begin` its identity (false: nothing is handed over and nil comes back), then the rows of
    /// each selection in chunks of at most `Limits.bootstrapRows` rows and about `chunkBytes`. The next chunk is read when the
    /// hand-over returns: memory does not grow with the number of rows, and a slow reader holds one connection. A small view
    /// (`smallRows`, `chunkBytes`) is read at once, in one visit to a connection, before `begin` is asked.
    ///
    /// The LSN is the end of the write-ahead log when the snapshot was there: all that it sees lies before. Nothing is read either,
    /// and nil comes back, when it does not see a transaction whose commit was in the log when it was asked for: ask again a moment later.
    package func read(
        _ selections: [SnapshotSelection],
        begin: @Sendable (_ snapshot: TransactionSnapshot, _ lsn: LSN) async throws -> Bool,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotIdentity? {
        try await read(choose: { _ in selections }, begin: { try await begin($0.snapshot, $0.lsn) }, rows: rows)
    }

    /// As above, with selections that depend on which snapshot it is.
    ///
    /// - Parameter expected: is told how many rows there are, before the first comes: exactly of a small view, and of another an
    ///   estimate of the planner's from its statistics, which costs no reading of rows (`SnapshotSelection.planned`).
    package func read(
        choose: @escaping @Sendable (SnapshotIdentity) throws -> [SnapshotSelection],
        begin: @Sendable (SnapshotIdentity) async throws -> Bool = { _ in true },
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)? = nil,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotIdentity? {
        do {
            switch try await small.read(choose) {
            case .unseen: return nil
            case .small(let identity, let chunks):
                guard try await begin(identity) else { return nil }
                if let expected { try await expected(chunks.reduce(0) { $0 + UInt64($1.rows.count) }) }
                for (index, chunk) in chunks.enumerated() where !chunk.rows.isEmpty { try await rows(index, chunk.buffer, chunk.rows) }
                return identity
            case .large: break
            }
            return try await streams.withConnection(within: .seconds(Self.streamSeconds)) { connection in
                try await connection.inTransaction(.readOnly) {
                    let result = try await connection.query(SnapshotIdentity.statement.sql, cached: true)
                    guard let identity = try SnapshotIdentity(result), try await begin(identity) else { return nil }
                    let selections = try choose(identity)
                    if let expected { try await expected(try await Self.estimate(selections, connection)) }
                    for (index, selection) in selections.enumerated() {
                        try await stream(selection, connection) { try await rows(index, $0.buffer, $0.rows) }
                    }
                    return identity
                }
            }
        } catch {
            throw PostgresFailure.forPort(error)
        }
    }

    /// The end of the write-ahead log now.
    package func currentLSN() async throws -> LSN {
        try await pool.perform { session in
            let text = try session.query("SELECT pg_current_wal_insert_lsn()", cached: true)[0, 0] ?? ""
            guard let lsn = LSN(text) else { throw SluiceError(.postgresStatement, "“\(text)” is not an LSN.") }
            return lsn
        }
    }

    /// A snapshot of now, of which nothing is read. What was over when it was taken lies before its end of the write-ahead log.
    package func place() async throws -> SnapshotIdentity {
        try await pool.perform { session in
            guard let identity = try SnapshotIdentity(try session.query(SnapshotIdentity.place, cached: true)) else {
                throw SluiceError(.postgresStatement, "PostgreSQL did not tell which database it is.")
            }
            return identity
        }
    }

    /// The rows of some keys with their clocks, as they are now; a key with neither is missing. Nothing is locked.
    package func stored(_ shape: TableShape, keys: [Value]) async throws -> [Value: LockedRow] {
        guard !keys.isEmpty else { return [:] }
        let load = RowLoad(shape, keys)
        return try await pool.perform { session in
            try session.inTransaction(.readOnly) {
                do throws(PipelineFailure) {
                    let results = try session.pipeline(load.reading)
                    return load.read(results[0], results[1], hasWriters: true).objects
                } catch {
                    throw error.error
                }
            }
        }
    }

    /// Whether a transaction is known to be in the database's history as it is now.
    package func hasSeen(_ witness: Witness) async throws -> Bool { try await History.find(witness, pool) == .seen }

    /// A view of at most so many rows, in at most a mebibyte, is small.
    package static let smallRows = SmallViews.rows

    /// Bytes of decoded rows after which a chunk is handed over although it has few rows.
    private static let chunkBytes = 1 << 20

    private func stream(
        _ selection: SnapshotSelection, _ connection: PostgresConnection, _ deliver: @Sendable (SnapshotChunk) async throws -> Void
    ) async throws {
        try await connection.stream(
            selection.sql, selection.values,
            chunk: { SnapshotChunk() },
            row: { lent, chunk in
                Self.append(lent, selection, &chunk, unfit)
                return chunk.rows.count >= Limits.bootstrapRows || chunk.buffer.byteCount >= Self.chunkBytes
            }, deliver: deliver)
    }

    private static func append(
        _ lent: PostgresRow, _ selection: SnapshotSelection, _ chunk: inout SnapshotChunk, _ unfit: ReportUnfit
    ) {
        let (shape, keysOnly) = (selection.shape, selection.keysOnly)
        let start = chunk.buffer.arena.count
        chunk.buffer.beginRow()
        do throws(Misfit) {
            if keysOnly {
                chunk.buffer.append(unsafe try shape.forms[shape.key].decode(lent.bytes(0), into: &chunk.buffer))
            } else {
                for (index, form) in shape.forms.enumerated() {
                    chunk.buffer.append(unsafe try form.decode(lent.bytes(index), into: &chunk.buffer))
                }
            }
            let row = chunk.buffer.endRow()
            let bound = shape.bound.current
            if !keysOnly, chunk.buffer.arena.count - start > bound.unmeasuredBytes(properties: shape.forms.count),
                chunk.buffer.isLarger(row, than: bound)
            {
                throw Misfit.tooLarge(bound)
            }
            chunk.rows.append(row)
        } catch {
            chunk.buffer.abandonRow()
            unfit(shape.type.name, lent.string(keysOnly ? 0 : shape.key) ?? "", error.reason)
        }
    }

    private static func estimate(_ selections: [SnapshotSelection], _ connection: PostgresConnection) async throws -> UInt64 {
        var total = 0.0
        for selection in selections {
            guard let planned = selection.planned,
                let text = try await connection.query(selection.explanation(planned), planned.parameters)[0, 0]
            else { continue }
            let rows = try JSON.parse(text).array?.first?["Plan"]?["Plan Rows"]
            if case .double(let number)? = rows { total += number } else { total += Double(rows?.int ?? 0) }
        }
        return UInt64(min(max(total, 0), 1e15))
    }
}
