import SluiceCore
import SluiceMerge
import SluicePipeline
import SluicePostgres

/// PostgreSQL's write side as the pipeline's port.
struct PostgresWrites: WriteStore {
    private let rows: PostgresRowStore

    init(pool: PostgresPool, tables: GatewayTables) { rows = PostgresRowStore(pool: pool, tables: { try tables.shape(of: $0) }) }

    func transaction<R: Sendable>(
        _ body: @Sendable (any WriteTransaction) async throws -> R
    ) async throws -> (result: R, lsn: LSN) {
        try await rows.transaction { try await body(Transaction(rows: $0)) }
    }

    private struct Transaction: WriteTransaction {
        let rows: PostgresRowTransaction

        func begin(_ origin: Origin, session: UInt64) async throws -> (changeset: UInt64, now: LSN, horizon: LSN) {
            try await rows.begin(origin, session: session)
        }

        func rejectedObjects(client: ClientID, after acknowledged: UInt64) async throws -> Set<ObjectKey> {
            try await rows.rejectedObjects(client: client, after: acknowledged)
        }

        func load(_ type: ObjectType, keys: [Value]) async throws -> [Value: StoredObject] {
            try await rows.load(type.name, keys: keys).mapValues { locked in
                StoredObject(
                    row: locked.row, clocks: try locked.clocks.map { try ObjectClocks(encoded: $0) }, rowTime: locked.rowTime,
                    writer: locked.writer)
            }
        }

        func write(_ type: ObjectType, key: Value, _ write: StoredWrite, clocks: ObjectClocks) async throws {
            let change: RowWrite =
                switch write {
                case .insert(let row): .insert(row)
                case .update(let values): .update(values)
                case .delete: .delete
                case .nothing: .nothing
                }
            try await rows.write(
                type.name, key: key, change, clocks: clocks.encoded, deleted: clocks.isDeleted ? clocks.deletion?.lsn : nil)
        }

        func reject(client: ClientID, _ writes: [RejectedWrite]) async throws -> UInt64 {
            try await rows.reject(client: client, writes.map(\.record))
        }

        func finish(_ origin: Origin, base: LSN) async throws { try await rows.finish(origin, base: base) }
    }
}
