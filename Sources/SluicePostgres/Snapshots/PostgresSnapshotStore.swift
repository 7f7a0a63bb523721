package import SluiceCore
package import SluicePorts
import SluiceValues

/// The read side of the authority: consistent snapshots, read at the reader's pace.
package struct PostgresSnapshotStore: Sendable {
    /// Receives each row that does not fit its class and is left out.
    package typealias ReportUnfit = @Sendable (_ type: String, _ key: String, _ reason: String) -> Void

    private let pool: PostgresPool
    private let streams: PostgresPool
    private let unfit: ReportUnfit
    let small: SmallViews
    /// The time for which a large view waits for a connection, in seconds.
    static let streamSeconds = 60

    /// Creates a store.
    ///
    /// - Parameter streams: The pool that lends a connection to each large view until it is read; nil for `pool`. If none is free
    ///   within `streamSeconds`, `read` throws `timeout`.
    package init(pool: PostgresPool, streams: PostgresPool? = nil, unfit: @escaping ReportUnfit = { _, _, _ in }) {
        self.pool = pool
        self.streams = streams ?? pool
        self.unfit = unfit
        small = SmallViews(pool: pool) { row, selection, chunk in Self.append(row, selection, &chunk, unfit) }
    }

    /// Opens one read-only snapshot, passes its identity to `begin` and then the rows of each selection to `rows`.
    ///
    /// A chunk has at most `Limits.bootstrapRows` rows and about `chunkBytes` bytes. The next one is read after `rows` returns.
    /// Memory does not grow with the number of rows, and a slow reader holds one connection. A small view (`smallRows`,
    /// `chunkBytes`) is read whole, in one visit to a connection, before `begin` is called.
    ///
    /// The LSN is the end of the WAL once the snapshot existed. Everything that the snapshot sees precedes it.
    /// - Returns: The snapshot's identity. The result is nil, and no row is passed, if `begin` returns `false`.
    package func read(
        _ selections: [SnapshotSelection],
        begin: @Sendable (_ snapshot: TransactionSnapshot, _ lsn: LSN) async throws -> Bool,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotStart? {
        try await read(choose: { _ in selections }, begin: { try await begin($0.snapshot, $0.lsn) }, rows: rows)
    }

    /// Reads selections that depend on the snapshot. `choose` is called a second time, with a new snapshot, if a view proves large.
    ///
    /// - Parameter expected: Receives the number of rows before the first row. For a small view it is exact, otherwise a
    ///   `RowEstimate`.
    package func read(
        choose: @escaping @Sendable (SnapshotStart) throws -> [SnapshotSelection],
        begin: @Sendable (SnapshotStart) async throws -> Bool = { _ in true },
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)? = nil,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotStart? {
        do {
            switch try await small.read(choose) {
            case .small(let identity, let chunks):
                guard try await begin(identity) else { return nil }
                if let expected { try await expected(chunks.reduce(0) { $0 + UInt64($1.rows.count) }) }
                for (index, chunk) in chunks.enumerated() where !chunk.rows.isEmpty { try await rows(index, chunk.buffer, chunk.rows) }
                return identity
            case .large: break
            }
            // A large view holds its connection for as long as its reader takes, hence the separate pool.
            return try await streams.withConnection(within: .seconds(Self.streamSeconds)) { connection in
                try await connection.inTransaction(.readOnly) {
                    // A second snapshot: the attempt as a small view has ended its transaction.
                    let result = try await connection.query(SnapshotStart.statement.sql, cached: true)
                    let identity = try SnapshotStart(result)
                    guard try await begin(identity) else { return nil }
                    let selections = try choose(identity)
                    if let expected { try await expected(try await RowEstimate.rows(of: selections, connection)) }
                    for (index, selection) in selections.enumerated() {
                        try await stream(selection, connection) { try await rows(index, $0.buffer, $0.rows) }
                    }
                    return identity
                }
            }
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    /// Returns the current end of the WAL.
    package func currentLSN() async throws -> LSN {
        try await pool.perform { session in
            let text = try session.query("SELECT pg_current_wal_insert_lsn()", cached: true)[0, 0] ?? ""
            guard let lsn = LSN(text) else { throw SluiceError(.postgresStatement, "“\(text)” is not an LSN.") }
            return lsn
        }
    }

    /// Returns the identity of a snapshot taken now, without reading rows. Transactions that had ended before precede its LSN.
    package func place() async throws -> SnapshotStart {
        try await pool.perform { session in
            try SnapshotStart(try session.query(SnapshotStart.place, cached: true))
        }
    }

    /// Returns the current rows of some keys with their clocks. A key with neither is missing. Locks nothing.
    /// - Returns: The objects, and the identity of the snapshot.
    package func stored(_ shape: TableShape, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart) {
        let load = RowLoad(shape, keys)
        return try await pool.perform { session in
            try session.inTransaction(.readOnly, first: SnapshotStart.statement) { identity in
                let start = try SnapshotStart(identity)
                let results: [PostgresResult]
                do throws(PipelineFailure) { results = try session.pipeline(load.reading) } catch { throw error.error }
                return (try load.read(results[0], results[1], hasWriters: true).objects, start)
            }
        }
    }

    /// Returns `true` if the transaction of a history anchor is known to be in the database's current history.
    package func hasSeen(_ witness: HistoryAnchor) async throws -> Bool { try await History.find(witness, pool) == .seen }

    /// The maximum number of rows of a small view, which also has at most 1 MiB.
    package static let smallRows = 256

    /// The size of decoded rows, in bytes, after which a chunk is passed on although it has few rows.
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

    /// Decodes a row into the chunk. A row that does not fit its class, or exceeds its bound, is reported and left out.
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
            // A row is measured only if its share of the arena may exceed the bound.
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
}
