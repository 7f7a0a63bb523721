import SluiceCore
package import SluicePorts
import SluiceValues
import Synchronization

/// The store of asymmetric objects. Rows and log offsets share one transaction, so that each object is written once.
package struct PostgresIngestStore: Sendable {
    private let pool: PostgresPool
    private let tables: PostgresRowStore.Tables
    private let locks: PartitionLocks
    private let ways = IngestWays()

    /// Creates a store.
    ///
    /// - Parameter conninfo: The server for a separate connection that holds the partition locks.
    package init(pool: PostgresPool, conninfo: String, tables: @escaping PostgresRowStore.Tables) {
        self.pool = pool
        self.tables = tables
        locks = PartitionLocks(conninfo)
    }

    /// Returns the next offset to read of each partition; 0 for a partition that was never read.
    package func offsets(topic: String, partitions: [Int32]) async throws -> [Int32: Int64] {
        try await pool.perform { session in
            var offsets = Dictionary(partitions.map { ($0, Int64(0)) }, uniquingKeysWith: { first, _ in first })
            let result = try session.query(
                "SELECT partition, next_offset FROM sluice.ingest_offset WHERE topic = $1", [.text(topic)], cached: true)
            for row in 0..<result.count {
                guard let partition = result.int(row, 0).flatMap({ Int32(exactly: $0) }), offsets[partition] != nil else { continue }
                offsets[partition] = result.int(row, 1) ?? 0
            }
            return offsets
        }
    }

    /// Writes the accepted objects, stores the rejected ones and advances the offsets, in one transaction.
    ///
    /// An object whose primary key exists is skipped. An object that PostgreSQL rejects is stored as rejected; the others are
    /// written.
    /// - Returns: The number of new rows, and the number of objects that PostgreSQL rejected.
    /// - Throws: `badMessageOrder` if a partition's stored offset is not the first of the batch, because another sink has written.
    ///   Then nothing is written.
    @discardableResult
    package func commit(_ batch: IngestOutcome) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: batch.accepted)
        return try await transact { session in
            // The offsets are locked first: of two sinks, the second waits here and fails before it writes a row.
            try Self.move(batch.topic, batch.offsets.mapValues { ($0.lowerBound, $0.upperBound) }, session)
            return try write(inserts, batch.refused, session)
        }
    }

    /// Resets the stored offset to 0, for a topic that was recreated.
    ///
    /// - Throws: `badMessageOrder` if the stored offset is not `offset`.
    package func rewind(topic: String, partition: Int32, from offset: Int64) async throws {
        try await pool.transact { session in try Self.move(topic, [partition: (offset, 0)], session) }
    }

    /// Writes objects without log offsets, for the embedded log. They are committed when the call returns.
    ///
    /// - Returns: The number of new rows, and the number of objects that PostgreSQL rejected.
    @discardableResult
    package func insert(_ accepted: [AcceptedObjects], refused: [RejectedObject] = []) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: accepted)
        return try await transact { session in try write(inserts, refused, session) }
    }

    /// Runs the body in one transaction.
    ///
    /// If only the COMMIT fails permanently, a row violates a deferred constraint, and the error does not name the row. The body
    /// then runs again, and each statement checks all constraints.
    private func transact<R: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> R) async throws -> R {
        try await pool.perform { session in
            var isWritten = false
            do {
                return try session.inTransaction {
                    let result = try body(session)
                    isWritten = true
                    return result
                }
            } catch let failure as PostgresError where isWritten && failure.isLasting {
                // The first run has been rolled back. This one fails at the statement of the row at fault.
                return try session.inTransaction {
                    try session.script("SET CONSTRAINTS ALL IMMEDIATE")
                    return try body(session)
                }
            }
        }
    }

    private func inserts(of accepted: [AcceptedObjects]) throws -> [BulkInsert] {
        try accepted.filter { !$0.rows.isEmpty }.sorted { $0.type.name < $1.type.name }.map { BulkInsert(try tables($0.type.name), $0) }
    }

    private func write(
        _ inserts: [BulkInsert], _ refused: [RejectedObject], _ session: PostgresSession
    ) throws -> (written: Int, refused: Int) {
        var kept = refused
        var written = 0
        for insert in inserts {
            let done = try insert.run(session, copies: ways.copies(insert.type), refused: &kept)
            ways.took(done.way, insert.type)
            written += done.written
        }
        try Self.keep(kept, session)
        return (written, kept.count - refused.count)
    }

    /// Returns the partitions of a topic that this store may read now: its share among all stores that claim the topic.
    ///
    /// The caller repeats the call regularly, with one call per topic at a time. A claim lasts until `release` or the loss of the
    /// connection.
    package func claim(topic: String, partitions: Int32) async throws -> Set<Int32> {
        do { return try await locks.claim(topic, of: partitions).held } catch { throw PostgresError.forPort(error) }
    }

    /// Releases the claimed partitions of a topic.
    package func release(topic: String) async { await locks.release(topic) }

    /// Locks the partitions' offsets, compares them with the sink's and advances them.
    private static func move(_ topic: String, _ steps: [Int32: (from: Int64, to: Int64)], _ session: PostgresSession) throws {
        guard !steps.isEmpty else { return }
        // One order for all sinks: of two with the same partitions, one waits for the other.
        let partitions = steps.keys.sorted()
        let place: [PostgresParameter] = [.text(topic), .text(StoreText.array(partitions.map { String($0) }))]
        var stored = try session.query(lock, place, cached: true)
        // The first batch of a partition inserts its offset. Another sink may do so at the same time, hence the second read.
        if stored.count < partitions.count {
            try session.execute(
                "INSERT INTO sluice.ingest_offset (topic, partition, next_offset) SELECT $1::text, p, 0 "
                    + "FROM unnest($2::int[]) AS p ORDER BY p ON CONFLICT DO NOTHING", place, cached: true)
            stored = try session.query(lock, place, cached: true)
        }
        let offsets = Dictionary((0..<stored.count).map { (stored[$0, 0] ?? "", stored.int($0, 1)) }) { first, _ in first }
        for (partition, step) in steps where offsets["\(partition)"] != step.from {
            throw SluiceError(
                .badMessageOrder,
                "Partition \(partition) of \(topic) is at another offset than this sink's \(step.from).",
                fix: "Nothing: another sink is active. This one starts again from the stored offset.")
        }
        try session.execute(
            "UPDATE sluice.ingest_offset AS o SET next_offset = u.next FROM unnest($2::int[], $3::bigint[]) AS u(partition, next) "
                + "WHERE o.topic = $1 AND o.partition = u.partition",
            place + [.text(StoreText.array(partitions.map { String(steps[$0]?.to ?? 0) }))], cached: true)
    }

    private static let lock =
        "SELECT partition, next_offset FROM sluice.ingest_offset WHERE topic = $1 AND partition = ANY($2::int[]) "
        + "ORDER BY partition FOR UPDATE"

    /// Stores rejected objects. One that is stored already remains a single letter.
    private static func keep(_ refused: [RejectedObject], _ session: PostgresSession) throws {
        guard !refused.isEmpty else { return }
        let texts = refused.map(\.record.text)
        try session.execute(
            """
            INSERT INTO sluice.ingest_rejected (type, source, log_offset, code, reason, object, bytes)
            SELECT u.type, u.source, u.log_offset, u.code, u.reason, u.object, u.bytes
            FROM unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::bytea[])
                AS u(source, type, log_offset, code, reason, object, bytes)
            ON CONFLICT DO NOTHING
            """,
            [
                .text(StoreText.array(refused.map(\.record.origin))),
                .text(StoreText.array(refused.map { StoreText.printable($0.record.type) })),
                .text(StoreText.array(refused.map { $0.record.offset.map { String($0) } })),
                .text(StoreText.array(refused.map { String($0.code.rawValue) })),
                .text(StoreText.array(refused.map { StoreText.printable($0.reason) })),
                .text(StoreText.array(texts)),
                .text(StoreText.array(zip(refused, texts).map { $0.record.kept(beside: $1).map { "\\x" + Hex.encode($0) } })),
            ], cached: true)
    }
}

/// The choice between COPY and INSERT for each class. If COPY fails for a batch, often because of existing keys, it likely fails
/// again.
private final class IngestWays: Sendable {
    /// The number of batches of a class that omit COPY after a failed one.
    private static let patience = 16
    private let left = Mutex<[String: Int]>([:])

    func copies(_ type: String) -> Bool { left.withLock { $0[type] == nil } }

    func took(_ way: BulkInsert.Way, _ type: String) {
        left.withLock { left in
            if let batches = left[type] {
                left[type] = batches > 1 ? batches - 1 : nil
            } else if way != .copy {
                left[type] = Self.patience
            }
        }
    }
}

extension IngestRecord {
    /// The source: `topic/partition`, `device/USER/CLIENT`, or `direct`.
    var origin: String { partition.map { "\($0.topic)/\($0.partition)" } ?? sender ?? "direct" }
    /// The object as printable text that PostgreSQL can store.
    var text: String { StoreText.printable(String(decoding: bytes, as: UTF8.self)) }
    /// Returns the bytes if `text` does not represent them exactly, else nil.
    func kept(beside text: String) -> ArraySlice<UInt8>? { text.utf8.elementsEqual(bytes) ? nil : bytes }
}
