package import SluiceCore

/// Rows of one table that belong to a view.
package struct SnapshotSelection: Sendable {
    package var shape: TableShape
    /// A condition on the table's columns with parameters `$1 …`.
    package var condition: String
    package var parameters: [PostgresParameter]

    package init(_ shape: TableShape, where condition: String = "true", _ parameters: [PostgresParameter] = []) {
        self.shape = shape
        self.condition = condition
        self.parameters = parameters
    }
}

/// The authority's read side: consistent snapshots, read at the reader's pace.
package struct PostgresSnapshotStore: Sendable {
    /// A row that does not fit its type; it is left out.
    package typealias ReportUnfit = @Sendable (_ type: String, _ key: String, _ reason: String) -> Void

    private let pool: PostgresPool
    private let unfit: ReportUnfit

    package init(pool: PostgresPool, unfit: @escaping ReportUnfit = { _, _, _ in }) {
        self.pool = pool
        self.unfit = unfit
    }

    /// Opens one read-only snapshot, hands `begin` its identity (false: nothing is read and nil comes back), then the rows of
    /// each selection in chunks of at most `Limits.bootstrapRows` rows and about `chunkBytes`. The next chunk is read when the
    /// hand-over returns: memory does not grow with the number of rows, and a slow reader holds one connection.
    ///
    /// The LSN is the end of the write-ahead log when the snapshot was there: all that it sees lies before.
    package func read(
        _ selections: [SnapshotSelection],
        begin: @Sendable (_ snapshot: TransactionSnapshot, _ lsn: LSN) async throws -> Bool,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> (snapshot: TransactionSnapshot, lsn: LSN)? {
        do {
            return try await pool.withConnection { connection in
                try await connection.inTransaction(.readOnly) {
                    let identity = try await Self.identity(connection)
                    guard try await begin(identity.snapshot, identity.lsn) else { return nil }
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

    private struct Chunk: Sendable {
        var buffer = RowBuffer()
        var rows: [RowRef] = []
    }

    /// Bytes of decoded rows after which a chunk is handed over although it has few rows.
    private static let chunkBytes = 1 << 20

    private func stream(
        _ selection: SnapshotSelection, _ connection: PostgresConnection, _ deliver: @Sendable (Chunk) async throws -> Void
    ) async throws {
        let shape = selection.shape
        try await connection.stream(
            "SELECT \(shape.columnList) FROM \(shape.table) WHERE \(selection.condition)", selection.parameters,
            chunk: { Chunk() },
            row: { lent, chunk in
                append(lent, shape, &chunk)
                return chunk.rows.count >= Limits.bootstrapRows || chunk.buffer.byteCount >= Self.chunkBytes
            }, deliver: deliver)
    }

    private func append(_ lent: PostgresRow, _ shape: TableShape, _ chunk: inout Chunk) {
        chunk.buffer.beginRow()
        do throws(Misfit) {
            for (index, form) in shape.forms.enumerated() {
                chunk.buffer.append(unsafe try form.decode(lent.bytes(index), into: &chunk.buffer))
            }
            chunk.rows.append(chunk.buffer.endRow())
        } catch {
            chunk.buffer.abandonRow()
            unfit(shape.type.name, lent.string(shape.key) ?? "", error.reason)
        }
    }

    private static func identity(_ connection: PostgresConnection) async throws -> (snapshot: TransactionSnapshot, lsn: LSN) {
        // The snapshot is taken when the statement begins, the LSN is read while it runs: after it.
        let result = try await connection.query("SELECT pg_current_snapshot(), pg_current_wal_insert_lsn()", cached: true)
        guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }) else {
            throw SluiceError(.postgresStatement, "PostgreSQL did not tell its snapshot.")
        }
        return (snapshot, lsn)
    }
}
