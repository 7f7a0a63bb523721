import SluiceCore
package import SluicePorts

/// The tables of asymmetric objects.
package struct PostgresIngest: IngestStore {
    private let store: PostgresIngestStore

    /// - Parameter tables: Returns the table of a class in the current schema.
    package init(pool: PostgresPool, conninfo: String, tables: @escaping PostgresRowStore.Tables) {
        store = PostgresIngestStore(pool: pool, conninfo: conninfo, tables: tables)
    }

    package func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        var offsets: [LogPartition: Int64] = [:]
        for (topic, partitions) in Dictionary(grouping: partitions, by: \.topic) {
            for (partition, offset) in try await store.offsets(topic: topic, partitions: partitions.map(\.partition)) {
                offsets[LogPartition(topic, partition)] = offset
            }
        }
        return offsets
    }

    package func commit(_ outcome: IngestOutcome) async throws -> IngestTally {
        let done = try await store.commit(outcome)
        return IngestTally(outcome.accepted, refused: outcome.refused.count, done)
    }

    package func rewind(_ partition: LogPartition, from offset: Int64) async throws {
        try await store.rewind(topic: partition.topic, partition: partition.partition, from: offset)
    }

    package func commit(accepted: [AcceptedObjects], refused: [RejectedObject]) async throws -> IngestTally {
        let done = try await store.insert(accepted, refused: refused)
        return IngestTally(accepted, refused: refused.count, done)
    }

    package func claim(topic: String, partitions: Int32) async throws -> Set<Int32> {
        try await store.claim(topic: topic, partitions: partitions)
    }

    package func release(topic: String) async { await store.release(topic: topic) }
}

extension IngestTally {
    /// - Parameter done: The store's counts of accepted objects: new rows, and rejected ones.
    fileprivate init(_ accepted: [AcceptedObjects], refused: Int, _ done: (written: Int, refused: Int)) {
        let count = accepted.reduce(0) { $0 + $1.rows.count }
        self.init(written: done.written, duplicates: count - done.written - done.refused, refused: refused + done.refused)
    }
}
