package import SluiceCore

/// What can be done inside a transaction of `PostgresRowStore`.
package struct PostgresRowTransaction: Sendable {
    let connection: PostgresConnection
    let tables: PostgresRowStore.Tables

    /// The prefix of the logical message that marks a transaction with its origin; its content is `client:changeset`.
    package static let messagePrefix = "sluice"

    /// Locks the client's line and, when the changeset is new, marks the transaction with its origin: before any of
    /// its changes in the log.
    /// - Returns: the number of the last changeset of this client that took effect, the end of the write-ahead log now, which is
    ///   before everything that this transaction writes, and the horizon (`ClientHorizon`).
    /// - Parameter session: of the client file, as `ClientStore` gave it.
    /// - Throws: `badClientFile` when there is no such client, `resync` when it has begun another session.
    package func begin(_ origin: Origin, session: UInt64 = 0) async throws -> (changeset: UInt64, now: LSN, horizon: LSN) {
        let result = try await connection.query(
            """
            WITH c AS (SELECT last_changeset, session FROM sluice.client WHERE id = $1 FOR UPDATE)
            SELECT last_changeset, pg_current_wal_insert_lsn(),
                CASE WHEN last_changeset < $2 AND session = $4 THEN pg_logical_emit_message(true, '\(Self.messagePrefix)', $3) END,
                (SELECT lsn FROM sluice.horizon), session
            FROM c
            """,
            [
                .int(Int64(clamping: origin.client.rawValue)), .int(Int64(clamping: origin.changeset)),
                .text("\(origin.client.rawValue):\(origin.changeset)"), .int(Int64(clamping: session)),
            ], cached: true)
        guard let last = result.int(0, 0), let now = result[0, 1].flatMap({ LSN($0) }) else {
            throw SluiceError(.badClientFile, "There is no client file \(origin.client).")
        }
        // What this one was still sending is sent again by the newer one, which also tells what became of it.
        guard result.int(0, 4) == Int64(clamping: session) else {
            throw SluiceError(.resync, "Client file \(origin.client) has begun another session.")
        }
        return (UInt64(last), now, result[0, 3].flatMap { LSN($0) } ?? .zero)
    }

    /// Objects that an open compensation newer than `acknowledged` concerns (CW-10).
    package func rejectedObjects(client: ClientID, after acknowledged: UInt64) async throws -> Set<ObjectKey> {
        try await connection.withSession { session in
            let result = try session.query(
                """
                SELECT DISTINCT type, key_value FROM sluice.rejected_write
                WHERE client = $1 AND compensation > $2 AND NOT acknowledged
                """, [.int(Int64(clamping: client.rawValue)), .int(Int64(clamping: acknowledged))], cached: true)
            var objects: Set<ObjectKey> = []
            for row in 0..<result.count {
                objects.insert(ObjectKey(type: result[row, 0] ?? "", key: ExtendedJSON.value(try result.json(row, 1))))
            }
            return objects
        }
    }

    /// Locks and loads objects of one type, in the order of their keys; a key with neither row nor clocks is missing.
    package func load(_ type: String, keys: [Value]) async throws -> [Value: LockedRow] {
        guard !keys.isEmpty else { return [:] }
        let shape = try tables(type)
        return try await connection.withSession { try Self.load(shape, keys, $0) }
    }

    private static func load(_ shape: TableShape, _ keys: [Value], _ session: PostgresSession) throws -> [Value: LockedRow] {
        let form = shape.forms[shape.key]
        // A domain's array would not meet the index; its text does.
        let element = form.columnType == "sluice.objectid" ? "text" : form.columnType
        let rows = try session.query(
            """
            SELECT \(shape.columnList), (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::bigint, xmin::text::bigint
            FROM \(shape.table) WHERE \(shape.keyColumn) = ANY($1::\(element)[]) ORDER BY \(shape.keyColumn) FOR UPDATE
            """, [.text(StoreText.array(keys.map(form.text)))], cached: true)
        var objects: [Value: LockedRow] = [:]
        var buffer = RowBuffer()
        rows.forEach { lent in
            let row = shape.lenientRow(lent, &buffer)
            guard let key = row[shape.key] else { return }
            objects[key] = LockedRow(row: row, clocks: nil, rowTime: lent.int(shape.columns.count) ?? 0)
            objects[key]?.writer = lent.int(shape.columns.count + 1).flatMap { UInt32(exactly: $0) }
        }
        // A statement of its own, after the locks: a join would read the clocks as they were before the wait for a lock.
        let texts = keys.map { StoreText.key($0) }
        let clocks = try session.query(
            """
            SELECT key, clocks, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM sluice.row_clock
            WHERE type = $1 AND key = ANY($2::text[]) ORDER BY key FOR UPDATE
            """,
            [.text(shape.type.name), .text(StoreText.array(texts))], cached: true)
        let byText = Dictionary(zip(texts, keys), uniquingKeysWith: { first, _ in first })
        for row in 0..<clocks.count {
            guard let key = clocks[row, 0].flatMap({ byText[$0] }), let bytes = clocks.bytes(row, 1) else { continue }
            objects[key, default: LockedRow(row: nil, clocks: nil, rowTime: clocks.int(row, 2) ?? 0)].clocks = bytes
        }
        return objects
    }

    /// Writes a row that `load` has locked, and its clocks.
    /// - Parameter deleted: The position that the clocks remember a deletion with, when the object is gone.
    /// - Throws: `writeNotAllowed` when PostgreSQL refuses the values: the transaction has failed then.
    package func write(_ type: String, key: Value, _ write: RowWrite, clocks: [UInt8], deleted: LSN? = nil) async throws {
        let shape = try tables(type)
        var statement = RowStatement(shape, key)
        statement.clocks(clocks, deleted: deleted)
        switch write {
        case .insert(let row): statement.insert(row)
        case .update(let values): statement.update(values)
        case .delete: statement.delete()
        case .nothing: break
        }
        let count: Int
        do {
            count = try await connection.execute(statement.sql, statement.parameters, cached: true)
        } catch let failure as PostgresFailure where failure.isRefusedValue || Self.isRaised(failure) {
            throw Self.refusal(failure)
        }
        guard count == 0 else { return }
        if case .insert = write { throw RowCollision() }
        throw SluiceError(.writeNotAllowed, "\(type) \(StoreText.key(key)): PostgreSQL changed no row; a trigger may have suppressed it.")
    }

    /// Keeps refused writes. - Returns: the number of the compensation.
    package func reject(client: ClientID, _ writes: [RejectedRecord]) async throws -> UInt64 {
        try await connection.withSession { try RejectedWriteStore.insert(writes, client: client, $0) }
    }

    /// Notes that the changeset took effect.
    /// - Parameter base: No later changeset of the client has an older base.
    package func finish(_ origin: Origin, base: LSN) async throws {
        try await connection.execute(
            "UPDATE sluice.client SET last_changeset = $2, seen_at = now(), position = greatest(position, $3::pg_lsn) WHERE id = $1",
            [.int(Int64(clamping: origin.client.rawValue)), .int(Int64(clamping: origin.changeset)), .text(base.description)], cached: true)
    }

    /// A trigger's RAISE EXCEPTION, or a view's check option.
    static func isRaised(_ failure: PostgresFailure) -> Bool { failure.sqlState == "P0001" || failure.sqlState == "44000" }

    static func refusal(_ failure: PostgresFailure) -> SluiceError {
        SluiceError(.writeNotAllowed, failure.message, fix: "Keep to the constraints of the table, or relax them.")
    }
}

/// One statement that writes a row and its clocks.
private struct RowStatement {
    private let shape: TableShape
    private let key: Value
    private var clockSQL = ""
    private var rowSQL: String?
    private(set) var parameters: [PostgresParameter] = []

    init(_ shape: TableShape, _ key: Value) {
        self.shape = shape
        self.key = key
    }

    /// The statement on the row is the main one: it gives the count of rows.
    var sql: String { rowSQL.map { "WITH clock AS (\(clockSQL)) \($0)" } ?? clockSQL }

    private mutating func bind(_ parameter: PostgresParameter) -> String {
        parameters.append(parameter)
        return "$\(parameters.count)"
    }

    private mutating func bind(_ value: Value, _ property: Int) -> String { bind(shape.forms[property].parameter(value)) }

    mutating func clocks(_ bytes: [UInt8], deleted: LSN?) {
        let values = [
            bind(.text(shape.type.name)), bind(.text(StoreText.key(key))), bind(.bytes(bytes)), bind(.optional(deleted?.description)),
        ]
        clockSQL = """
            INSERT INTO sluice.row_clock (type, key, clocks, deleted_lsn) VALUES (\(values.joined(separator: ", "))) \
            ON CONFLICT (type, key) DO UPDATE SET clocks = excluded.clocks, deleted_lsn = excluded.deleted_lsn
            """
    }

    mutating func insert(_ row: Row) {
        var columns: [String] = []
        var values: [String] = []
        for index in shape.columns.indices {
            guard let value = row[index] else { continue }
            columns.append(shape.columns[index])
            values.append(bind(value, index))
        }
        rowSQL = """
            INSERT INTO \(shape.table) (\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", "))) \
            ON CONFLICT (\(shape.keyColumn)) DO NOTHING
            """
    }

    mutating func update(_ values: [Int: Value]) {
        let sets = values.sorted { $0.key < $1.key }
            .filter { shape.columns.indices.contains($0.key) && $0.key != shape.key }
            .map { "\(shape.columns[$0.key]) = \(bind($0.value, $0.key))" }
        guard !sets.isEmpty else { return }
        rowSQL = "UPDATE \(shape.table) SET \(sets.joined(separator: ", ")) WHERE \(shape.keyColumn) = \(bind(key, shape.key))"
    }

    mutating func delete() { rowSQL = "DELETE FROM \(shape.table) WHERE \(shape.keyColumn) = \(bind(key, shape.key))" }
}
