import SluiceCore
import SluicePipeline
import SluicePostgres

/// The tables of asymmetric objects as the pipeline's port.
struct PostgresIngest: IngestStore {
    private let store: PostgresIngestStore

    init(pool: PostgresPool, tables: GatewayTables, conninfo: String) {
        store = PostgresIngestStore(pool: pool, conninfo: conninfo, tables: { try tables.shape(of: $0) })
    }

    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        var offsets: [LogPartition: Int64] = [:]
        for (topic, partitions) in Dictionary(grouping: partitions, by: \.topic) {
            for (partition, offset) in try await store.offsets(topic: topic, partitions: partitions.map(\.partition)) {
                offsets[LogPartition(topic, partition)] = offset
            }
        }
        return offsets
    }

    func commit(_ outcome: IngestOutcome) async throws {
        _ = try await store.commit(
            IngestBatch(
                topic: outcome.partition.topic, partition: outcome.partition.partition, offsets: outcome.from..<outcome.to,
                accepted: outcome.accepted.map { ($0.type.name, $0.row) }, refused: outcome.refused.map(RefusedRecord.init)))
    }

    func rewind(_ partition: LogPartition, from offset: Int64) async throws {
        try await store.rewind(topic: partition.topic, partition: partition.partition, from: offset)
    }

    func commit(accepted: [AcceptedObject], refused: [RefusedObject]) async throws {
        let byType = Dictionary(grouping: accepted, by: \.type.name)
        for (type, objects) in byType { _ = try await store.insert(type: type, rows: objects.map(\.row)) }
        if let type = refused.first?.type {
            _ = try await store.insert(type: type, rows: [], refused: refused.map(RefusedRecord.init))
        }
    }

    func acquire(topic: String) async throws -> Bool { try await store.acquire(topic: topic) }
    func release(topic: String) async { await store.release(topic: topic) }
}

extension RefusedRecord {
    init(_ object: RefusedObject) {
        self.init(type: object.type, code: object.code, reason: object.reason, object: object.object)
    }
}
