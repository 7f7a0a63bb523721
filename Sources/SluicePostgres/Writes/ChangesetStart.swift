import SluiceCore
import SluiceMerge
import SluicePorts

/// The statements that begin the transaction of a changeset.
enum ChangesetStart {
    /// Returns the statement that locks the client's row and turns `synchronous_commit` off for the transaction.
    ///
    /// If the changeset is new and the session current, it also emits the transaction's logical message. The lock is `FOR NO KEY
    /// UPDATE`, which permits references from other tables: `ClientStore.recordIngest` does not wait for it.
    static func statement(_ origin: Origin, _ session: UInt64) -> PostgresStatement {
        PostgresStatement(
            // Constant because: the prefix of messages is a constant of the transaction.
            """
            WITH c AS (SELECT last_changeset, session FROM sluice.client WHERE id = $1 FOR NO KEY UPDATE)
            SELECT last_changeset, pg_current_wal_insert_lsn(),
                CASE WHEN last_changeset < $2 AND session = $4
                    THEN pg_logical_emit_message(true, '\(PostgresRowTransaction.messagePrefix)', $3) END,
                (SELECT lsn FROM sluice.horizon), session, set_config('synchronous_commit', 'off', true)
            FROM c
            """,
            [
                .int(Int64(clamping: origin.client.rawValue)), .int(Int64(clamping: origin.changeset)),
                .text("\(origin.client.rawValue):\(origin.changeset):\(origin.time.rawValue)"), .int(Int64(clamping: session)),
            ])
    }

    /// Returns the state of the client and of the WAL at the start of the transaction.
    ///
    /// - Throws: `badClientFile` for an unknown client, `resync` if the client has begun another session.
    static func read(_ result: PostgresResult, _ origin: Origin, _ session: UInt64) throws -> WriteBasis {
        guard let last = result.int(0, 0), let now = result[0, 1].flatMap({ LSN($0) }) else {
            throw SluiceError(.badClientFile, "Client replica \(origin.client) does not exist.")
        }
        // The newer session sends the outstanding changesets again and receives their outcome.
        guard result.int(0, 4) == Int64(clamping: session) else {
            throw SluiceError(.resync, "Client replica \(origin.client) has begun another session.")
        }
        return WriteBasis(changeset: UInt64(clamping: last), now: now, horizon: result[0, 3].flatMap { LSN($0) } ?? .zero)
    }

    /// Returns the query for objects of unacknowledged compensating writes newer than `acknowledged`. It reads one object more than
    /// the limit, so that `rejectedObjects` notices an excess.
    static func rejected(_ client: ClientID, _ acknowledged: UInt64) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT DISTINCT type, key_value FROM sluice.rejected_write
            WHERE client = $1 AND compensation > $2 AND NOT acknowledged LIMIT \(Limits.untoldObjects + 1)
            """, [.int(Int64(clamping: client.rawValue)), .int(Int64(clamping: acknowledged))])
    }

    /// Returns the objects that the query of `rejected` found.
    ///
    /// - Throws: `resync` if they are more than `Limits.untoldObjects`.
    static func rejectedObjects(_ result: PostgresResult, _ client: ClientID) throws -> Set<ObjectKey> {
        guard result.count <= Limits.untoldObjects else {
            throw SluiceError(
                .resync, "Client replica \(client) has not acknowledged compensating writes for more than \(Limits.untoldObjects) objects.",
                fix: "Nothing: it receives them again after its reconnect, and acknowledges them with its next upload.")
        }
        var objects: Set<ObjectKey> = []
        for row in 0..<result.count {
            objects.insert(ObjectKey(type: result[row, 0] ?? "", key: ExtendedJSON.value(try result.json(row, 1))))
        }
        return objects
    }
}

/// The statements that lock and read objects of one class.
struct RowLoad: Sendable {
    let shape: TableShape
    private let keys: [Value]
    private let texts: [String]

    init(_ shape: TableShape, _ keys: [Value]) {
        self.shape = shape
        self.keys = keys
        texts = keys.map { StoreText.key($0) }
    }

    /// The statements that lock the rows and then their clocks. A join would read clocks from before the wait for a row's lock.
    var statements: [PostgresStatement] {
        [
            rows(keys),
            PostgresStatement(
                Self.lookingUp(
                    """
                    SELECT key, clocks, deleted_lsn IS NULL FROM sluice.row_clock WHERE type = $2 AND row_clock.key
                    """, texts.count, "text", also: ", (extract(epoch FROM clock_timestamp()) * 1000)::bigint"),
                [.text(texts.count == 1 ? texts[0] : StoreText.array(texts)), .text(shape.type.name)]),
        ]
    }

    /// Returns the statement that reads the rows of some of the keys.
    func rows(_ keys: [Value], locks: Bool = true) -> PostgresStatement {
        let form = shape.forms[shape.key]
        // An array of the domain would not use the index; an array of its text does.
        let element = form.code == .objectId ? "text" : form.lookupType
        return PostgresStatement(
            Self.lookingUp(
                """
                SELECT \(shape.columnList), (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::bigint AS sluice_time,
                    xmin::text::bigint AS sluice_writer
                FROM \(shape.table) WHERE \(shape.lookupKey)
                """, keys.count, element, locks: locks && shape.mapping.isWritable),
            [keys.count == 1 ? form.parameter(keys[0]) : .text(StoreText.array(keys.map(form.text)))])
    }

    /// The statements that read rows and clocks without locks. They must run in one snapshot, in which rows and clocks match.
    var reading: [PostgresStatement] {
        let clocks = PostgresStatement(
            """
            SELECT key, clocks, true, (extract(epoch FROM now()) * 1000)::bigint, xmin::text::bigint
            FROM sluice.row_clock WHERE type = $2 AND key = ANY ($1::text[])
            """, [.text(StoreText.array(texts)), .text(shape.type.name)])
        return [rows(keys, locks: false), clocks]
    }

    /// Returns a statement that looks up each key separately, in the given order, and locks the rows it finds.
    ///
    /// With `= ANY`, a plan cached while the table was small walks the index in key order after the table has grown.
    ///
    /// A single key is passed as a scalar. For a list of unknown length PostgreSQL plans each execution anew, which takes longer
    /// than the execution.
    /// - Parameters:
    ///   - lookup: The query up to the column that is compared with a key.
    ///   - count: The number of keys. They are the first parameter: one as a scalar, several as an array.
    ///   - also: Expressions that are evaluated after the lock is acquired.
    ///   - locks: `false` to leave the rows unlocked.
    private static func lookingUp(
        _ lookup: String, _ count: Int, _ element: String, also: String = "", locks: Bool = true
    ) -> String {
        let (list, key) =
            count == 1
            ? ("", "$1::\(element)")
            : ("unnest($1::\(element)[]) AS sluice_wanted (sluice_key) CROSS JOIN LATERAL ", "sluice_wanted.sluice_key")
        return "SELECT stored.*\(also) FROM \(list)(\(lookup) = \(key)\(locks ? " FOR UPDATE" : "")) AS stored"
    }

    /// Returns the objects that `statements` found.
    ///
    /// - Parameter hasWriters: `true` for the results of `reading`.
    /// - Returns: The objects, and the keys with clocks of a live object but without a row. A lookup cannot wait for a missing row:
    ///   the transaction that held the clocks may have inserted the row since.
    /// - Throws: `internalError` for clocks that are damaged or of another version.
    func read(
        _ rows: PostgresResult, _ clocks: PostgresResult, hasWriters: Bool = false
    ) throws -> (objects: [Value: StoredObject], missing: [Value]) {
        var objects: [Value: StoredObject] = [:]
        take(rows, into: &objects)
        var missing: [Value] = []
        let byText = Dictionary(zip(texts, keys), uniquingKeysWith: { first, _ in first })
        for row in 0..<clocks.count {
            guard let key = clocks[row, 0].flatMap({ byText[$0] }), let bytes = clocks.bytes(row, 1) else { continue }
            // Clocks of a live object without its row: the row may have been inserted since the lookup.
            if objects[key] == nil, clocks.bool(row, 2) == true { missing.append(key) }
            let decoded = try ObjectClocks(encoded: bytes)
            objects[key, default: StoredObject(row: nil, clocks: nil, rowTime: clocks.int(row, 3) ?? 0)].clocks = decoded
            if hasWriters { objects[key]?.clocksWriter = clocks.int(row, 4).flatMap { UInt32(exactly: $0) } }
        }
        return (objects, missing)
    }

    /// Merges rows into the objects found so far.
    func take(_ rows: PostgresResult, into objects: inout [Value: StoredObject]) {
        var buffer = RowBuffer()
        rows.forEach { lent in
            let row = shape.lenientRow(lent, &buffer)
            guard let key = row[shape.key] else { return }
            var object = StoredObject(row: row, clocks: objects[key]?.clocks, rowTime: lent.int(shape.columns.count) ?? 0)
            object.writer = lent.int(shape.columns.count + 1).flatMap { UInt32(exactly: $0) }
            objects[key] = object
        }
    }
}
