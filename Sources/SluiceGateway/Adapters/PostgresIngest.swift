import SluiceCore
import SluicePorts
import SluicePostgres

/// The tables of asymmetric objects, as the pipeline's port.
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

    func commit(_ outcome: IngestOutcome) async throws -> IngestTally {
        let done = try await store.commit(
            IngestBatch(
                topic: outcome.topic, offsets: outcome.offsets, accepted: outcome.accepted.map(IngestRows.init),
                refused: outcome.refused.map(StoredRejectedObject.init)))
        return IngestTally(outcome.accepted, refused: outcome.refused.count, done)
    }

    func rewind(_ partition: LogPartition, from offset: Int64) async throws {
        try await store.rewind(topic: partition.topic, partition: partition.partition, from: offset)
    }

    func commit(accepted: [AcceptedObjects], refused: [RejectedObject]) async throws -> IngestTally {
        let done = try await store.insert(accepted.map(IngestRows.init), refused: refused.map(StoredRejectedObject.init))
        return IngestTally(accepted, refused: refused.count, done)
    }

    func claim(topic: String, partitions: Int32) async throws -> Set<Int32> {
        try await store.claim(topic: topic, partitions: partitions)
    }

    func release(topic: String) async { await store.release(topic: topic) }
}

extension IngestTally {
    /// - Parameter done: The store's counts of accepted objects: new rows, and rejected ones.
    fileprivate init(_ accepted: [AcceptedObjects], refused: Int, _ done: (written: Int, refused: Int)) {
        let count = accepted.reduce(0) { $0 + $1.rows.count }
        self.init(written: done.written, duplicates: count - done.written - done.refused, refused: refused + done.refused)
    }
}

extension IngestSource {
    fileprivate init(_ record: IngestRecord) {
        self.init(
            type: record.type, bytes: Array(record.bytes),
            origin: record.partition.map { "\($0.topic)/\($0.partition)" } ?? record.sender ?? "direct",
            offset: record.offset)
    }
}

extension IngestRows {
    fileprivate init(_ objects: AcceptedObjects) {
        let records = objects.records
        self.init(type: objects.type.name, buffer: objects.buffer, rows: objects.rows) { IngestSource(records[$0]) }
    }
}

extension StoredRejectedObject {
    fileprivate init(_ object: RejectedObject) {
        self.init(source: IngestSource(object.record), code: object.code, reason: object.reason)
    }
}
