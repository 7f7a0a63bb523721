package import SluiceCore
import Synchronization

/// What can be done inside a transaction of `PostgresRowStore`, on the connection's queue.
///
/// What has no answer waits for the next that has, or for the end of the transaction, so that all of it is one round trip.
package struct PostgresRowTransaction: Sendable {
    let tables: PostgresRowStore.Tables
    private let waiting = Waiting()

    /// - Parameter lockTimeout: how long a statement may wait for a lock, in PostgreSQL's words; nil for as long as it may take.
    init(tables: @escaping PostgresRowStore.Tables, lockTimeout: String? = nil) {
        self.tables = tables
        waiting.add(PostgresStatement(TransactionMode.readCommitted.rawValue), as: .other)
        if let lockTimeout { waiting.add(PostgresStatement("SET LOCAL lock_timeout = '\(lockTimeout)'"), as: .other) }
    }

    /// The prefix of the logical message that marks a transaction with its origin; its content is `client:changeset:time`.
    package static let messagePrefix = "sluice"

    /// Begins the transaction of a changeset: locks the client's line, has what it needs to be judged by read and its objects
    /// locked, and, when the changeset is new, marks the transaction with its origin: before any of its changes in the log.
    ///
    /// The commit will not wait for the disk: `PostgresRowStore.durable` does, for many at once.
    /// - Parameters:
    ///   - session: of the client file, as `ClientStore` gave it.
    ///   - acknowledged: the last compensation that the client has applied.
    ///   - keys: the objects that the changeset names; types and keys in an order that is the same everywhere.
    /// - Throws: `badClientFile` when there is no such client, `resync` when it has begun another session, or has not noted too much of what was undone.
    package func open(
        _ connection: PostgresSession, _ origin: Origin, session: UInt64 = 0, acknowledged: UInt64 = 0,
        keys: [(type: String, keys: [Value])] = []
    ) throws -> RowBasis {
        let loads = try keys.map { RowLoad(try tables($0.type), $0.keys) }
        let statements = [ChangesetStart.statement(origin, session), ChangesetStart.rejected(origin.client, acknowledged)]
        let results = try run(statements + loads.flatMap(\.statements), connection)
        var basis = try ChangesetStart.read(results[0], origin, session)
        basis.rejected = try ChangesetStart.rejectedObjects(results[1], origin.client)
        let found = try objects(loads, Array(results.dropFirst(2)), connection)
        for (load, objects) in zip(loads, found) { basis.rows[load.shape.type.name] = objects }
        return basis
    }

    /// Locks and loads objects of one type, in the order of their keys; a key with neither row nor clocks is missing.
    package func load(_ connection: PostgresSession, _ type: String, keys: [Value]) throws -> [Value: LockedRow] {
        guard !keys.isEmpty else { return [:] }
        let load = RowLoad(try tables(type), keys)
        return try objects([load], try run(load.statements, connection), connection).first ?? [:]
    }

    /// What the loads found. A row that was not there when its clocks were not to be had yet is looked for once more, now that they are
    /// locked: only one that is still missing was deleted by somebody else.
    /// - Parameter results: two of each load.
    private func objects(
        _ loads: [RowLoad], _ results: [PostgresResult], _ connection: PostgresSession
    ) throws -> [[Value: LockedRow]] {
        let found = loads.indices.map { loads[$0].read(results[2 * $0], results[2 * $0 + 1]) }
        var objects = found.map(\.objects)
        let again = loads.indices.filter { !found[$0].missing.isEmpty }
        guard !again.isEmpty else { return objects }
        let rows = try run(again.map { loads[$0].rows(found[$0].missing) }, connection)
        for (index, rows) in zip(again, rows) { loads[index].take(rows, into: &objects[index]) }
        return objects
    }

    /// Has the write times of rows that are written from here on noted in the log, for the devices that show them.
    package func announce(_ times: [(object: ObjectKey, times: [UInt8])]) {
        guard !times.isEmpty else { return }
        waiting.add(
            PostgresStatement(
                "SELECT pg_logical_emit_message(true, '\(WriteTimesMessage.prefix)', $1::bytea)", [.bytes(WriteTimesMessage.encode(times))]),
            as: .other)
    }

    /// Has a row written that `load` or `open` has locked, and its clocks. When PostgreSQL refuses the values, the transaction
    /// ends in `RefusedRow`.
    /// - Parameter deleted: The position that the clocks remember a deletion with, when the object is gone.
    package func write(_ type: String, key: Value, _ write: RowWrite, clocks: [UInt8], deleted: LSN? = nil) throws {
        var statement = RowStatement(try tables(type), key)
        statement.clocks(clocks, deleted: deleted)
        switch write {
        case .insert(let row): statement.insert(row)
        case .update(let values): statement.update(values)
        case .delete: statement.delete()
        case .nothing: break
        }
        let isInsert = if case .insert = write { true } else { false }
        waiting.add(
            PostgresStatement(statement.sql, statement.parameters),
            as: .write(ObjectKey(type: type, key: key), isInsert: isInsert))
    }

    /// Has foreign keys checked at the commit. Each has to be deferrable.
    package func postpone(_ keys: [ForeignKey]) {
        guard !keys.isEmpty else { return }
        waiting.add(
            PostgresStatement(
                "SET CONSTRAINTS \(keys.map { "\(SQLQuote.identifier($0.schema)).\(SQLQuote.identifier($0.name))" }.joined(separator: ", ")) DEFERRED"
            ), as: .other)
    }

    /// Keeps refused writes. - Returns: the number of the compensation.
    package func reject(_ connection: PostgresSession, client: ClientID, _ writes: [RejectedRecord]) throws -> UInt64 {
        _ = try run([], connection)
        return try RejectedWriteStore.insert(writes, client: client, connection)
    }

    /// Has it noted that the changeset took effect.
    /// - Parameters:
    ///   - time: the changeset's, as its file said it.
    ///   - base: No later changeset of the client has an older base.
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

    /// Does what is left to do, and commits. - Returns: an LSN at or after the commit's.
    /// - Throws: `writeNotAllowed` when PostgreSQL refuses values only now (a deferred constraint).
    func commit(_ connection: PostgresSession) throws -> LSN {
        _ = try run([], connection)
        do {
            let results = try connection.pipeline([PostgresStatement("COMMIT"), PostgresStatement("SELECT pg_current_wal_insert_lsn()")])
            guard results[0].tag == "COMMIT" else { throw connection.rolledBack }
            return results[1][0, 0].flatMap { LSN($0) } ?? .zero
        } catch let failure as PipelineFailure {
            if failure.statement == 0, let refused = failure.error as? PostgresFailure, refused.isRefusedWrite {
                throw refused.refusal(of: try waiting.types.map { try tables($0).mapping })
            }
            throw failure.error
        }
    }

    /// Runs what waits, and then these statements. - Returns: the results of these.
    private func run(_ statements: [PostgresStatement], _ connection: PostgresSession) throws -> [PostgresResult] {
        let (before, kinds) = waiting.take()
        do {
            let results = try connection.pipeline(before + statements)
            for (result, kind) in zip(results, kinds) { try kind.check(result) }
            return Array(results.dropFirst(before.count))
        } catch let failure as PipelineFailure {
            guard kinds.indices.contains(failure.statement), case .write(let object, _) = kinds[failure.statement],
                let refused = failure.error as? PostgresFailure, refused.isRefusedWrite
            else { throw failure.error }
            throw RefusedRow(
                object: object, isReference: refused.sqlState == "23503", error: refused.refusal(of: [try tables(object.type).mapping]))
        }
    }
}

/// What a changeset is judged by.
package struct RowBasis: Sendable {
    /// The number of the last changeset of this client that took effect.
    package var changeset: UInt64
    /// The end of the write-ahead log now, which is before everything that this transaction writes.
    package var now: LSN
    /// See `ClientHorizon`.
    package var horizon: LSN
    /// Objects that an open compensation concerns which the client has not applied.
    package var rejected: Set<ObjectKey> = []
    /// By type and key; an object with neither row nor clocks is missing.
    package var rows: [String: [Value: LockedRow]] = [:]
}

/// Statements without an answer that a transaction has still to run.
private final class Waiting: Sendable {
    enum Kind: Sendable {
        case write(ObjectKey, isInsert: Bool)
        case other

        /// A write that changed no row took no effect.
        func check(_ result: PostgresResult) throws {
            guard case .write(let object, let isInsert) = self, result.affected == 0 else { return }
            if isInsert { throw RowCollision() }
            let name = "\(object.type) \(StoreText.key(object.key))"
            throw RefusedRow(
                object: object, isReference: false,
                error: SluiceError(.writeNotAllowed, "\(name): PostgreSQL changed no row; a trigger may have suppressed it."))
        }
    }

    private struct State {
        var statements: [PostgresStatement] = []
        var kinds: [Kind] = []
        var types: Set<String> = []
    }

    private let state = Mutex(State())

    /// The types of all objects that the transaction has written.
    var types: Set<String> { state.withLock { $0.types } }

    func add(_ statement: PostgresStatement, as kind: Kind) {
        state.withLock {
            $0.statements.append(statement)
            $0.kinds.append(kind)
            if case .write(let object, _) = kind { $0.types.insert(object.type) }
        }
    }

    func take() -> (statements: [PostgresStatement], kinds: [Kind]) {
        state.withLock { state in
            defer { (state.statements, state.kinds) = ([], []) }
            return (state.statements, state.kinds)
        }
    }
}
