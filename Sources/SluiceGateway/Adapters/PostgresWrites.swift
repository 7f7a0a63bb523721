import SluiceCore
import SluiceMerge
import SluicePipeline
import SluicePostgres

/// PostgreSQL's write side as the pipeline's port.
struct PostgresWrites: WriteStore {
    private let rows: PostgresRowStore

    init(_ pools: GatewayPools, tables: GatewayTables) {
        rows = PostgresRowStore(
            pool: pools.main, waiting: pools.judged, log: DurableLog(pool: pools.disk), tables: { try tables.shape(of: $0) })
    }

    func durable() async throws { try await rows.durable() }

    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        let written: ((decision: WriteDecision, compensation: UInt64?), lsn: LSN)
        do {
            switch decide {
            case .atOnce(let decide):
                written = try await rows.transaction { transaction, session in
                    try Self.write(decide(try Self.begin(request, transaction, session)), request, transaction, session)
                }
            case .waiting(let decide):
                written = try await rows.waitingTransaction { transaction, connection in
                    let basis = try await connection.withSession { try Self.begin(request, transaction, $0) }
                    let decision = try await decide(basis)
                    return try await connection.withSession { try Self.write(decision, request, transaction, $0) }
                }
            }
        } catch let refused as RefusedRow {
            throw RefusedByDatabase(object: refused.object, error: refused.error)
        }
        let (decision, compensation) = written.0
        return WriteOutcome(lsn: written.lsn, rejected: decision.rejected, compensation: compensation, futile: decision.futile)
    }

    private static func begin(
        _ request: WriteRequest, _ transaction: PostgresRowTransaction, _ session: PostgresSession
    ) throws -> WriteBasis {
        let basis = try transaction.open(
            session, request.origin, session: request.session, acknowledged: request.acknowledged,
            keys: request.objects.map { ($0.type.name, $0.keys) })
        var stored: [ObjectKey: StoredObject] = [:]
        for (type, objects) in basis.rows {
            for (key, locked) in objects {
                stored[ObjectKey(type: type, key: key)] = StoredObject(
                    row: locked.row, clocks: try locked.clocks.map { try ObjectClocks(encoded: $0) }, rowTime: locked.rowTime,
                    writer: locked.writer)
            }
        }
        return WriteBasis(
            changeset: basis.changeset, now: basis.now, horizon: basis.horizon, rejected: basis.rejected, stored: stored)
    }

    private static func write(
        _ decision: WriteDecision, _ request: WriteRequest, _ transaction: PostgresRowTransaction, _ session: PostgresSession
    ) throws -> (decision: WriteDecision, compensation: UInt64?) {
        guard !decision.isOld else { return (decision, nil) }
        for write in decision.writes {
            try transaction.write(
                write.type.name, key: write.key, write.change.row, clocks: write.clocks.encoded,
                deleted: write.clocks.isDeleted ? write.clocks.deletion?.lsn : nil)
        }
        let rejected = decision.rejected
        let client = request.origin.client
        let compensation = rejected.isEmpty ? nil : try transaction.reject(session, client: client, rejected.map(\.record))
        transaction.finish(request.origin, time: request.time, base: request.base)
        return (decision, compensation)
    }
}

extension StoredWrite {
    fileprivate var row: RowWrite {
        switch self {
        case .insert(let row): .insert(row)
        case .update(let values): .update(values)
        case .delete: .delete
        case .nothing: .nothing
        }
    }
}
