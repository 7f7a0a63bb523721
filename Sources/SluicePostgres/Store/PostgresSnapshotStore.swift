package import SluiceCore

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
        choose: @Sendable (SnapshotIdentity) throws -> [SnapshotSelection],
        begin: @Sendable (SnapshotIdentity) async throws -> Bool = { _ in true },
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)? = nil,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotIdentity? {
        do {
            switch try await readSmall(choose) {
            case .unseen: return nil
            case .small(let identity, let chunks):
                guard try await begin(identity) else { return nil }
                if let expected { try await expected(chunks.reduce(0) { $0 + UInt64($1.rows.count) }) }
                for (index, chunk) in chunks.enumerated() where !chunk.rows.isEmpty { try await rows(index, chunk.buffer, chunk.rows) }
                return identity
            case .large: break
            }
            return try await pool.withConnection { connection in
                try await connection.inTransaction(.readOnly) {
                    let result = try await connection.query(Self.identification, cached: true)
                    guard let identity = try Self.identity(result), try await begin(identity) else { return nil }
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
            let result = try session.query(
                "SELECT pg_current_snapshot(), pg_current_wal_insert_lsn(), \(Self.clusterExpression)", cached: true)
            guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }),
                let cluster = result[0, 2]
            else {
                throw SluiceError(.postgresStatement, "PostgreSQL did not tell which database it is.")
            }
            return SnapshotIdentity(snapshot: snapshot, lsn: lsn, cluster: cluster)
        }
    }

    private static let clusterExpression = """
        (SELECT system_identifier FROM pg_control_system()) || '-' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
        || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
        """

    private struct Chunk: Sendable {
        var buffer = RowBuffer()
        var rows: [RowRef] = []
    }

    /// Bytes of decoded rows after which a chunk is handed over although it has few rows.
    private static let chunkBytes = 1 << 20

    /// A view of at most so many rows, in at most `chunkBytes`, is small.
    package static let smallRows = 256

    private enum Beginning {
        /// The snapshot does not see a transaction that it must see.
        case unseen
        /// All there is, a chunk for each selection.
        case small(SnapshotIdentity, [Chunk])
        /// There is more; nothing is open any more.
        case large
    }

    private struct TooMuch: Error {}

    private func readSmall(_ choose: @Sendable (SnapshotIdentity) throws -> [SnapshotSelection]) async throws -> Beginning {
        do {
            return try await pool.withSession { session in
                try session.inTransaction(.readOnly, first: PostgresStatement(Self.identification)) { result in
                    guard let identity = try Self.identity(result) else { return .unseen }
                    var (chunks, count, bytes) = ([Chunk](), 0, 0)
                    for selection in try choose(identity) {
                        guard let sql = selection.sql(upTo: Self.smallRows + 1) else { throw TooMuch() }
                        var chunk = Chunk()
                        try session.stream(sql, selection.values, cached: true) { lent in
                            guard bytes + chunk.buffer.byteCount < Self.chunkBytes else { throw TooMuch() }
                            append(lent, selection.shape, keysOnly: selection.keysOnly, &chunk)
                            count += 1
                        }
                        guard count <= Self.smallRows else { throw TooMuch() }
                        bytes += chunk.buffer.byteCount
                        chunks.append(chunk)
                    }
                    return .small(identity, chunks)
                }
            }
        } catch is TooMuch {
            return .large
        } catch let failure as PostgresFailure where failure.isStalePlan {
            return .large
        }
    }

    private func stream(
        _ selection: SnapshotSelection, _ connection: PostgresConnection, _ deliver: @Sendable (Chunk) async throws -> Void
    ) async throws {
        let (shape, keysOnly) = (selection.shape, selection.keysOnly)
        try await connection.stream(
            selection.sql, selection.values,
            chunk: { Chunk() },
            row: { lent, chunk in
                append(lent, shape, keysOnly: keysOnly, &chunk)
                return chunk.rows.count >= Limits.bootstrapRows || chunk.buffer.byteCount >= Self.chunkBytes
            }, deliver: deliver)
    }

    private func append(_ lent: PostgresRow, _ shape: TableShape, keysOnly: Bool, _ chunk: inout Chunk) {
        chunk.buffer.beginRow()
        do throws(Misfit) {
            if keysOnly {
                chunk.buffer.append(unsafe try shape.forms[shape.key].decode(lent.bytes(0), into: &chunk.buffer))
            } else {
                for (index, form) in shape.forms.enumerated() {
                    chunk.buffer.append(unsafe try form.decode(lent.bytes(index), into: &chunk.buffer))
                }
            }
            chunk.rows.append(chunk.buffer.endRow())
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

    /// How many numbers above a snapshot's are looked at, at most: transactions that ran and had not ended, with their subtransactions.
    private static let numbersAbove = 1_024

    /// - Returns: nil when the snapshot does not see a transaction that was committed before this one began. Its commit record is
    ///   in the log, and its effects become visible an instant later, or when a synchronous standby has answered: but its time of
    ///   commit is known before either.
    private static func identity(_ result: PostgresResult) throws -> SnapshotIdentity? {
        guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }),
            let cluster = result[0, 2]
        else {
            throw SluiceError(.postgresStatement, "PostgreSQL did not tell its snapshot.")
        }
        return result[0, 3] == "t" ? nil : SnapshotIdentity(snapshot: snapshot, lsn: lsn, cluster: cluster)
    }

    /// The snapshot is taken when the statement begins, the LSN is read while it runs: after it. So is the age of a number, which
    /// says how many have been given out since; all that the snapshot has not seen are among them.
    private static let identification = """
        SELECT s, pg_current_wal_insert_lsn(), \(clusterExpression),
            EXISTS (
                SELECT FROM (
                    SELECT pg_snapshot_xip(s)::xid AS number
                    UNION ALL
                    SELECT above::text::xid
                    FROM generate_series(0, least(age(pg_snapshot_xmax(s)::xid), \(numbersAbove)) - 1) AS i,
                        LATERAL (SELECT (pg_snapshot_xmax(s)::text::bigint + i) & 4294967295) AS n (above)
                    WHERE above > 2
                ) AS unseen
                WHERE pg_xact_commit_timestamp(number) <= transaction_timestamp())
        FROM pg_current_snapshot() AS s
        """
}
