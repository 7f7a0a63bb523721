package import SluiceCore
package import SluiceMerge
package import SluicePorts
import Synchronization

/// The operations inside a transaction of `PostgresRowStore`, on the connection's queue.
///
/// A statement without a result is queued until the next one with a result, or the end of the transaction. All of them share one
/// round trip.
package struct PostgresRowTransaction: Sendable {
    let tables: PostgresRowStore.Tables
    private let waiting = Waiting()

    /// Creates a transaction. Its first statement begins it in the isolation level read committed.
    ///
    /// - Parameter lockTimeout: The limit of each wait for a lock, in PostgreSQL's syntax; nil for no limit.
    init(tables: @escaping PostgresRowStore.Tables, lockTimeout: String? = nil) {
        self.tables = tables
        waiting.add(PostgresStatement(TransactionMode.readCommitted.rawValue), as: .other)
        if let lockTimeout { waiting.add(PostgresStatement("SET LOCAL lock_timeout = '\(lockTimeout)'"), as: .other) }
    }

    /// The prefix of the logical message that carries a transaction's origin. Its content is `client:changeset:time`.
    package static let messagePrefix = "sluice"

    /// Begins the transaction of a changeset: locks the client's row, reads the basis of the decision and locks the named objects.
    ///
    /// If the changeset is new, a logical message with its origin precedes its changes in the WAL. The commit does not wait for the
    /// disk; `PostgresRowStore.durable` does, for many commits at once.
    /// - Parameters:
    ///   - session: The number of the client's session, from `ClientStore.open`.
    ///   - acknowledged: The last compensating write that the client has applied.
    ///   - keys: The objects that the changeset names. All callers must use the same order of classes and keys, or they deadlock.
    /// - Throws: `badClientFile` for an unknown client. The error is `resync` if the client has begun another session or has not
    ///   applied too many compensating writes.
    package func open(
        _ connection: PostgresSession, _ origin: Origin, session: UInt64 = 0, acknowledged: UInt64 = 0,
        keys: [(type: String, keys: [Value])] = []
    ) throws -> WriteBasis {
        let loads = try keys.map { RowLoad(try tables($0.type), $0.keys) }
        let statements = [ChangesetStart.statement(origin, session), ChangesetStart.rejected(origin.client, acknowledged)]
        // One round trip locks the client and the objects, and reads the rejections.
        let results = try run(statements + loads.flatMap(\.statements), connection)
        var basis = try ChangesetStart.read(results[0], origin, session)
        basis.rejected = try ChangesetStart.rejectedObjects(results[1], origin.client)
        let found = try objects(loads, Array(results.dropFirst(2)), connection)
        for (load, objects) in zip(loads, found) {
            for (key, object) in objects { basis.stored[ObjectKey(type: load.shape.type.name, key: key)] = object }
        }
        return basis
    }

    /// Locks and loads objects of one class, in the given order. A key with neither row nor clocks is missing from the result.
    package func load(_ connection: PostgresSession, _ type: String, keys: [Value]) throws -> [Value: StoredObject] {
        guard !keys.isEmpty else { return [:] }
        let load = RowLoad(try tables(type), keys)
        return try objects([load], try run(load.statements, connection), connection).first ?? [:]
    }

    /// Returns the objects that the loads found.
    ///
    /// If a row was not found but its clocks are those of a live object, it is looked up again under the lock of the clocks. A row
    /// that is still missing was deleted by another program.
    /// - Parameter results: Two results per load: rows, then clocks.
    private func objects(
        _ loads: [RowLoad], _ results: [PostgresResult], _ connection: PostgresSession
    ) throws -> [[Value: StoredObject]] {
        let found = try loads.indices.map { try loads[$0].read(results[2 * $0], results[2 * $0 + 1]) }
        var objects = found.map(\.objects)
        let again = loads.indices.filter { !found[$0].missing.isEmpty }
        guard !again.isEmpty else { return objects }
        // The clocks are locked now, so the second lookup is final.
        let rows = try run(again.map { loads[$0].rows(found[$0].missing) }, connection)
        for (index, rows) in zip(again, rows) { loads[index].take(rows, into: &objects[index]) }
        return objects
    }

    /// Queues a logical message with the write times of the rows that are written after it, for the devices that show them.
    package func announce(_ times: [(object: ObjectKey, times: [UInt8])]) {
        guard !times.isEmpty else { return }
        waiting.add(
            PostgresStatement(
                // Constant because: the prefix is a constant of `WriteTimesMessage`.
                "SELECT pg_logical_emit_message(true, '\(WriteTimesMessage.prefix)', $1::bytea)", [.bytes(WriteTimesMessage.encode(times))]),
            as: .other)
    }

    /// Queues the write of a row that `load` or `open` has locked, and of its clocks.
    ///
    /// If PostgreSQL rejects the values, the call that runs the statement throws `DatabaseRejection`.
    ///
    /// - Throws: `DatabaseRejection` for a write that no row of the table can have.
    package func write(_ type: String, key: Value, _ write: StoredWrite, clocks: ObjectClocks) throws {
        let (shape, object) = (try tables(type), ObjectKey(type: type, key: key))
        if let obstacle = shape.obstacle(write, key: key) { throw DatabaseRejection(object: object, error: obstacle) }
        var statement = RowStatement(shape, key)
        statement.clocks(clocks)
        switch write {
        case .insert(let row): statement.insert(row)
        case .update(let values): statement.update(values)
        case .delete: statement.delete()
        case .nothing: break
        }
        let isInsert = if case .insert = write { true } else { false }
        waiting.add(
            PostgresStatement(statement.sql, statement.parameters),
            as: .write(object, isInsert: isInsert, doubt: shape.doubt(write, key: key)))
    }

    /// Queues the deferral of foreign-key checks to the commit. Each key must be deferrable.
    package func postpone(_ keys: [ForeignKey]) {
        guard !keys.isEmpty else { return }
        waiting.add(
            PostgresStatement(
                "SET CONSTRAINTS \(keys.map { "\(SQLQuote.identifier($0.schema)).\(SQLQuote.identifier($0.name))" }.joined(separator: ", ")) DEFERRED"
            ), as: .other)
    }

    /// Stores write rejections, after the queued statements.
    ///
    /// - Returns: The number of the compensating write.
    package func reject(_ connection: PostgresSession, client: ClientID, _ writes: [WriteRejection]) throws -> UInt64 {
        _ = try run([], connection)
        return try WriteRejectionStore.insert(writes, client: client, connection)
    }

    /// Queues the record that the changeset took effect.
    ///
    /// - Parameters:
    ///   - time: The time of the changeset, as the client stated it.
    ///   - base: A lower bound for the bases of the client's later changesets.
    package func finish(_ origin: Origin, time: HybridTime, base: LSN) {
        waiting.add(
            PostgresStatement(
                """
                UPDATE sluice.client SET last_changeset = $2, last_time = $4, seen_at = now(), position = greatest(position, $3::pg_lsn)
                WHERE id = $1
                """,
                [
                    .int(Int64(clamping: origin.client.rawValue)), .int(Int64(clamping: origin.changeset)), .text(base.description),
                    .int(Int64(bitPattern: time.rawValue)),
                ]),
            as: .other)
    }

    /// Runs the queued statements and commits.
    ///
    /// - Returns: An LSN at or after the commit.
    /// - Throws: `DatabaseRejection` if PostgreSQL rejects a queued write; `writeNotAllowed` if it rejects values only now (a deferred
    ///   constraint).
    func commit(_ connection: PostgresSession) throws -> LSN {
        _ = try run([], connection)
        do {
            let results = try connection.pipeline([PostgresStatement("COMMIT"), PostgresStatement("SELECT pg_current_wal_insert_lsn()")])
            // PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK, without an error.
            guard results[0].tag == "COMMIT" else { throw connection.rolledBack }
            return results[1][0, 0].flatMap { LSN($0) } ?? .zero
        } catch let failure as PipelineFailure {
            if failure.statement == 0, let refused = failure.error as? PostgresError, refused.isRefusedWrite {
                throw refused.refusal(of: try waiting.types.map { try tables($0).mapping })
            }
            throw failure.error
        }
    }

    /// Runs the queued statements and then the given ones.
    ///
    /// - Returns: The results of the given statements.
    private func run(_ statements: [PostgresStatement], _ connection: PostgresSession) throws -> [PostgresResult] {
        let (before, kinds) = waiting.take()
        do {
            let results = try connection.pipeline(before + statements)
            // A write without effect is an error, even though PostgreSQL reports success.
            for (result, kind) in zip(results, kinds) { try kind.check(result) }
            return Array(results.dropFirst(before.count))
        } catch let failure as PipelineFailure {
            // Only a queued write has an object to blame.
            guard kinds.indices.contains(failure.statement), case .write(let object, let isInsert, let doubt) = kinds[failure.statement],
                let refused = failure.error as? PostgresError, refused.isRefusedWrite || refused.isRefusedColumn
            else { throw failure.error }
            if isInsert, refused.isKeyCollision(try tables(object.type).mapping) { throw RowCollision() }
            // 22P02: an enum lacks the value.
            let known = refused.sqlState == "22P02" ? doubt : nil
            throw DatabaseRejection(
                object: object, error: try known ?? refused.refusal(of: [tables(object.type).mapping]),
                isReference: refused.sqlState == "23503")
        }
    }
}

/// The queued statements of a transaction, which have no result of interest.
private final class Waiting: Sendable {
    enum Kind: Sendable {
        /// A write; `doubt` is the reason if PostgreSQL does not know a value.
        case write(ObjectKey, isInsert: Bool, doubt: SluiceError?)
        case other

        /// Throws if a write changed no row: `RowCollision` for an insertion, else `DatabaseRejection`.
        func check(_ result: PostgresResult) throws {
            guard case .write(let object, let isInsert, _) = self, result.affected == 0 else { return }
            if isInsert { throw RowCollision() }
            let name = "\(object.type) \(StoreText.key(object.key))"
            throw DatabaseRejection(
                object: object,
                error: SluiceError(.writeNotAllowed, "\(name): PostgreSQL changed no row; a trigger may have suppressed it."))
        }
    }

    private struct State {
        var statements: [PostgresStatement] = []
        var kinds: [Kind] = []
        var types: Set<String> = []
    }

    private let state = Mutex(State())

    /// The classes of all objects that the transaction has written.
    var types: Set<String> { state.withLock { $0.types } }

    func add(_ statement: PostgresStatement, as kind: Kind) {
        state.withLock {
            $0.statements.append(statement)
            $0.kinds.append(kind)
            if case .write(let object, _, _) = kind { $0.types.insert(object.type) }
        }
    }

    func take() -> (statements: [PostgresStatement], kinds: [Kind]) {
        state.withLock { state in
            defer { (state.statements, state.kinds) = ([], []) }
            return (state.statements, state.kinds)
        }
    }
}
