package import SluiceCore

/// Which snapshot it is.
package struct SnapshotIdentity: Hashable, Sendable {
    package var snapshot: TransactionSnapshot
    /// The end of the write-ahead log when the snapshot was there: all that it sees lies before.
    package var lsn: LSN
    /// Database, server and timeline: transaction numbers mean the same only where these are the same.
    package var cluster: String
}

/// Rows by the transaction that wrote them last.
package enum RowAge: Hashable, Sendable {
    case any
    /// By one with a lower number.
    case before(UInt64)
    /// By this one or a later one.
    case since(UInt64)
}

/// Rows of one table that belong to a view.
package struct SnapshotSelection: Sendable {
    package var shape: TableShape
    /// A condition on the table's columns with parameters `$1 …`.
    package var condition: String
    package var parameters: [PostgresParameter]
    package var age: RowAge
    /// Whether a row is read as its key alone, in one cell.
    package var keysOnly: Bool
    /// The first so many in an order of columns and then of the key; nil: all.
    package var first: First?
    /// What the planner is asked about when somebody wants to know how many rows there are; nil: they count in another selection.
    /// Its own condition at first, without the age, of which nobody has statistics.
    package var planned: Planned?

    package struct Planned: Hashable, Sendable {
        package var condition: String
        package var parameters: [PostgresParameter]
    }

    package struct First: Hashable, Sendable {
        package var limit: Int
        package var columns: [Column]

        package struct Column: Hashable, Sendable {
            package var index: Int
            package var isDescending: Bool

            package init(index: Int, isDescending: Bool) {
                self.index = index
                self.isDescending = isDescending
            }
        }

        package init(limit: Int, columns: [Column]) {
            self.limit = limit
            self.columns = columns
        }
    }

    package init(
        _ shape: TableShape, where condition: String = "true", _ parameters: [PostgresParameter] = [], age: RowAge = .any,
        keysOnly: Bool = false, first: First? = nil
    ) {
        self.shape = shape
        self.condition = condition
        self.parameters = parameters
        self.age = age
        self.keysOnly = keysOnly
        self.first = first
        planned = Planned(condition: condition, parameters: parameters)
    }

    fileprivate var sql: String {
        let columns = keysOnly ? shape.keyColumn : shape.columnList
        return "SELECT \(columns) FROM \(shape.table) WHERE (\(condition))\(ageCondition)\(ending)"
    }

    fileprivate func explanation(_ planned: Planned) -> String {
        "EXPLAIN (FORMAT JSON) SELECT 1 FROM \(shape.table) WHERE (\(planned.condition))\(ending)"
    }

    private var ending: String {
        guard let first else { return "" }
        let columns = first.columns + [First.Column(index: shape.key, isDescending: false)]
        let order = columns.map { column in
            let isText = shape.type.properties[column.index].type == .string
            return shape.columns[column.index] + (isText ? " COLLATE \"C\"" : "")
                + (column.isDescending ? " DESC NULLS LAST" : " ASC NULLS FIRST")
        }
        return " ORDER BY \(order.joined(separator: ", ")) LIMIT \(first.limit)"
    }

    fileprivate var values: [PostgresParameter] {
        switch age {
        case .any: parameters
        case .before(let xid), .since(let xid): parameters + [.int(Int64(UInt32(truncatingIfNeeded: xid)))]
        }
    }

    /// A row's `xmin` has the low 32 bits of the number. Of two numbers less than 2³¹ apart the difference, taken within
    /// 32 bits, tells which is lower; a row that was last written longer ago may count as new, never the other way round.
    private var ageCondition: String {
        let distance = "((xmin::text::bigint - $\(parameters.count + 1)::bigint) & 4294967295)"
        return switch age {
        case .any: ""
        case .before: " AND \(distance) >= 2147483648"
        case .since: " AND \(distance) < 2147483648"
        }
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
    /// The LSN is the end of the write-ahead log when the snapshot was there: all that it sees lies before. Nothing is read either,
    /// and nil comes back, when it does not see a transaction whose commit was in the log when it was asked for: ask again a moment later.
    package func read(
        _ selections: [SnapshotSelection],
        begin: @Sendable (_ snapshot: TransactionSnapshot, _ lsn: LSN) async throws -> Bool,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotIdentity? {
        try await read(choose: { try await begin($0.snapshot, $0.lsn) ? selections : nil }, rows: rows)
    }

    /// As above, with selections that depend on which snapshot it is; nil gives it up.
    ///
    /// - Parameter expected: is told how many rows the planner takes there to be, before the first comes: an estimate from its
    ///   statistics, which costs no reading of rows (`SnapshotSelection.planned`).
    package func read(
        choose: @Sendable (SnapshotIdentity) async throws -> [SnapshotSelection]?,
        expected: (@Sendable (_ rows: UInt64) async throws -> Void)? = nil,
        rows: @Sendable (_ selection: Int, _ buffer: RowBuffer, _ rows: [RowRef]) async throws -> Void
    ) async throws -> SnapshotIdentity? {
        do {
            return try await pool.withConnection { connection in
                try await connection.inTransaction(.readOnly) {
                    guard let identity = try await Self.identity(connection), let selections = try await choose(identity) else {
                        return nil
                    }
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

    /// How many numbers above a snapshot's are looked at: transactions that ran and had not ended, with their subtransactions.
    private static let numbersAbove = 1_024

    /// - Returns: nil when the snapshot does not see a transaction that was committed before this one began. Its commit record is
    ///   in the log, and its effects become visible an instant later, or when a synchronous standby has answered: but its time of
    ///   commit is known before either.
    private static func identity(_ connection: PostgresConnection) async throws -> SnapshotIdentity? {
        // The snapshot is taken when the statement begins, the LSN is read while it runs: after it.
        let result = try await connection.query(
            """
            SELECT s, pg_current_wal_insert_lsn(), \(clusterExpression),
                EXISTS (
                    SELECT FROM (
                        SELECT pg_snapshot_xip(s)::xid AS number
                        UNION ALL
                        SELECT above::text::xid
                        FROM generate_series(0, \(numbersAbove - 1)) AS i, LATERAL (SELECT (pg_snapshot_xmax(s)::text::bigint + i) & 4294967295) AS n (above)
                        WHERE above > 2
                    ) AS unseen
                    WHERE pg_xact_commit_timestamp(number) <= transaction_timestamp())
            FROM pg_current_snapshot() AS s
            """, cached: true)
        guard let snapshot = result[0, 0].flatMap({ TransactionSnapshot($0) }), let lsn = result[0, 1].flatMap({ LSN($0) }),
            let cluster = result[0, 2]
        else {
            throw SluiceError(.postgresStatement, "PostgreSQL did not tell its snapshot.")
        }
        return result[0, 3] == "t" ? nil : SnapshotIdentity(snapshot: snapshot, lsn: lsn, cluster: cluster)
    }
}
