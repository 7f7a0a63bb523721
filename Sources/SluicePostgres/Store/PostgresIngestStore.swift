import SluiceCore
import Synchronization

/// Where asymmetric objects land: rows and log offsets in one transaction, so that each object lands once.
package struct PostgresIngestStore: Sendable {
    private let pool: PostgresPool
    private let tables: PostgresRowStore.Tables
    private let locks: PartitionLocks
    private let ways = IngestWays()

    /// - Parameter conninfo: For the connection of its own that holds the locks.
    package init(pool: PostgresPool, conninfo: String, tables: @escaping PostgresRowStore.Tables) {
        self.pool = pool
        self.tables = tables
        locks = PartitionLocks(conninfo)
    }

    /// Where to go on reading; 0 for a partition never read.
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

    /// Writes the accepted objects, keeps the refused ones and moves the offsets on, all or nothing. A primary key that is there
    /// already is passed over (ING-5). An object that PostgreSQL refuses joins the refused; the others stand.
    ///
    /// - Returns: how many rows were new, and how many objects PostgreSQL refused.
    /// - Throws: `badMessageOrder` when a partition's stored offset is not the batch's first: another sink has been here.
    ///   Nothing is written then.
    @discardableResult
    package func commit(_ batch: IngestBatch) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: batch.accepted)
        return try await transact { session in
            try Self.move(batch.topic, batch.offsets.mapValues { ($0.lowerBound, $0.upperBound) }, session)
            return try write(inserts, batch.refused, session)
        }
    }

    /// Sets the stored offset back to 0, for a topic that was made anew.
    /// - Throws: `badMessageOrder` when the stored offset is not `offset`.
    package func rewind(topic: String, partition: Int32, from offset: Int64) async throws {
        try await pool.transact { session in try Self.move(topic, [partition: (offset, 0)], session) }
    }

    /// Writes objects that do not come from the log (the embedded log's way), acknowledged on commit.
    @discardableResult
    package func insert(_ accepted: [IngestRows], refused: [RefusedRecord] = []) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: accepted)
        return try await transact { session in try write(inserts, refused, session) }
    }

    /// Runs the body in one transaction. When that fails only at its COMMIT, one of the rows breaks a deferred constraint, and nobody knows
    /// which: it is run again with all constraints checked by each statement.
    private func transact<R: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> R) async throws -> R {
        try await pool.perform { session in
            var isWritten = false
            do {
                return try session.inTransaction {
                    let result = try body(session)
                    isWritten = true
                    return result
                }
            } catch let failure as PostgresFailure where isWritten && failure.isLasting {
                return try session.inTransaction {
                    try session.script("SET CONSTRAINTS ALL IMMEDIATE")
                    return try body(session)
                }
            }
        }
    }

    private func inserts(of accepted: [IngestRows]) throws -> [BulkInsert] {
        try accepted.filter { !$0.rows.isEmpty }.sorted { $0.type < $1.type }.map { BulkInsert(try tables($0.type), $0) }
    }

    private func write(
        _ inserts: [BulkInsert], _ refused: [RefusedRecord], _ session: PostgresSession
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

    /// Says which partitions of a topic are this store's to read now: its share, as all that ask share them. For one caller a
    /// topic, who asks again and again. Held until `release` or the loss of the connection.
    package func claim(topic: String, partitions: Int32) async throws -> Set<Int32> {
        do { return try await locks.claim(topic, of: partitions) } catch { throw PostgresFailure.forPort(error) }
    }

    package func release(topic: String) async { await locks.release(topic) }

    /// Locks the partitions' offsets, compares them with what the sink believes, and moves them on.
    private static func move(_ topic: String, _ steps: [Int32: (from: Int64, to: Int64)], _ session: PostgresSession) throws {
        guard !steps.isEmpty else { return }
        // In one order, so that of two sinks with the same partitions one waits for the other.
        let partitions = steps.keys.sorted()
        let place: [PostgresParameter] = [.text(topic), .text(StoreText.array(partitions.map { String($0) }))]
        var stored = try session.query(lock, place, cached: true)
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
                "Partition \(partition) of \(topic) is at another offset than \(step.from), from which this sink wanted to write.",
                fix: "Nothing: another sink is at work; this one starts again from the stored offset.")
        }
        try session.execute(
            "UPDATE sluice.ingest_offset AS o SET next_offset = u.next FROM unnest($2::int[], $3::bigint[]) AS u(partition, next) "
                + "WHERE o.topic = $1 AND o.partition = u.partition",
            place + [.text(StoreText.array(partitions.map { String(steps[$0]?.to ?? 0) }))], cached: true)
    }

    private static let lock =
        "SELECT partition, next_offset FROM sluice.ingest_offset WHERE topic = $1 AND partition = ANY($2::int[]) "
        + "ORDER BY partition FOR UPDATE"

    private static func keep(_ refused: [RefusedRecord], _ session: PostgresSession) throws {
        guard !refused.isEmpty else { return }
        let texts = refused.map(\.source.text)
        try session.execute(
            """
            INSERT INTO sluice.ingest_rejected (type, source, log_offset, code, reason, object, bytes)
            SELECT u.type, u.source, u.log_offset, u.code, u.reason, u.object, u.bytes
            FROM unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::bytea[])
                AS u(source, type, log_offset, code, reason, object, bytes)
            ON CONFLICT DO NOTHING
            """,
            [
                .text(StoreText.array(refused.map(\.source.origin))),
                .text(StoreText.array(refused.map { StoreText.printable($0.source.type) })),
                .text(StoreText.array(refused.map { $0.source.offset.map { String($0) } })),
                .text(StoreText.array(refused.map { String($0.code.rawValue) })),
                .text(StoreText.array(refused.map { StoreText.printable($0.reason) })),
                .text(StoreText.array(texts)),
                .text(StoreText.array(zip(refused, texts).map { $0.source.kept(beside: $1).map { "\\x" + Hex.encode($0) } })),
            ], cached: true)
    }
}

/// Whether COPY is worth trying. Where a batch held keys that were there already, the next ones are likely to.
private final class IngestWays: Sendable {
    /// How many batches of a type go without COPY after one that had to.
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
