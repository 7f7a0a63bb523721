package import SluiceCore
import Synchronization

/// What an object was made from, for the case that it is refused.
package struct IngestSource: Hashable, Sendable {
    /// The type that it was sent as.
    package var type: String
    /// The object as it came.
    package var bytes: [UInt8]
    /// Its place in its partition; nil when it came by no log.
    package var offset: Int64?

    package init(type: String, bytes: [UInt8], offset: Int64? = nil) {
        self.type = type
        self.bytes = bytes
        self.offset = offset
    }

    /// As people read it, and as PostgreSQL can hold it.
    var text: String { StoreText.printable(String(decoding: bytes, as: UTF8.self)) }
    /// The bytes where the text does not hold them.
    var kept: [UInt8]? { Array(text.utf8) == bytes ? nil : bytes }
}

/// An object on its way into its table, in the order of its type's properties.
package struct IngestRow: Sendable {
    package var type: String
    package var row: Row
    package var source: IngestSource

    package init(type: String, row: Row, source: IngestSource) {
        self.type = type
        self.row = row
        self.source = source
    }
}

/// An object that is kept instead of written.
package struct RefusedRecord: Hashable, Sendable {
    package var source: IngestSource
    package var code: ErrorCode
    package var reason: String

    package init(source: IngestSource, code: ErrorCode, reason: String) {
        self.source = source
        self.code = code
        self.reason = reason
    }
}

/// What a run of records of one partition came to.
package struct IngestBatch: Sendable {
    package var topic: String
    package var partition: Int32
    /// The offset of the first record, and the offset after the last.
    package var offsets: Range<Int64>
    package var accepted: [IngestRow]
    package var refused: [RefusedRecord]

    package init(
        topic: String, partition: Int32, offsets: Range<Int64>, accepted: [IngestRow], refused: [RefusedRecord] = []
    ) {
        self.topic = topic
        self.partition = partition
        self.offsets = offsets
        self.accepted = accepted
        self.refused = refused
    }
}

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

    /// Writes the accepted objects, keeps the refused ones and moves the offset on, all or nothing. A primary key that is there
    /// already is passed over (ING-5). An object that PostgreSQL refuses joins the refused; the others stand.
    ///
    /// - Returns: how many rows were new, and how many objects PostgreSQL refused.
    /// - Throws: `badMessageOrder` when the stored offset is not the batch's first: another sink has been here. Nothing is
    ///   written then.
    @discardableResult
    package func commit(_ batch: IngestBatch) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: batch.accepted)
        return try await pool.transact { session in
            try Self.move(batch.topic, batch.partition, from: batch.offsets.lowerBound, to: batch.offsets.upperBound, session)
            return try write(inserts, batch.refused, source: "\(batch.topic)/\(batch.partition)", session)
        }
    }

    /// Sets the stored offset back to 0, for a topic that was made anew.
    /// - Throws: `badMessageOrder` when the stored offset is not `offset`.
    package func rewind(topic: String, partition: Int32, from offset: Int64) async throws {
        try await pool.transact { session in try Self.move(topic, partition, from: offset, to: 0, session) }
    }

    /// Writes objects that do not come from the log (the embedded log's way), acknowledged on commit.
    @discardableResult
    package func insert(_ accepted: [IngestRow], refused: [RefusedRecord] = []) async throws -> (written: Int, refused: Int) {
        let inserts = try inserts(of: accepted)
        return try await pool.transact { session in try write(inserts, refused, source: "direct", session) }
    }

    private func inserts(of accepted: [IngestRow]) throws -> [BulkInsert] {
        try Dictionary(grouping: accepted, by: \.type).sorted { $0.key < $1.key }.map { BulkInsert(try tables($0.key), $0.value) }
    }

    private func write(
        _ inserts: [BulkInsert], _ refused: [RefusedRecord], source: String, _ session: PostgresSession
    ) throws -> (written: Int, refused: Int) {
        var kept = refused
        var written = 0
        for insert in inserts {
            let done = try insert.run(session, copies: ways.copies(insert.type), refused: &kept)
            ways.took(done.way, insert.type)
            written += done.written
        }
        try Self.keep(kept, source: source, session)
        return (written, kept.count - refused.count)
    }

    /// Says which partitions of a topic are this store's to read now: its share, as all that ask share them. For one caller a
    /// topic, who asks again and again. Held until `release` or the loss of the connection.
    package func claim(topic: String, partitions: Int32) async throws -> Set<Int32> {
        do { return try await locks.claim(topic, of: partitions) } catch { throw PostgresFailure.forPort(error) }
    }

    package func release(topic: String) async { await locks.release(topic) }

    /// Locks the partition's offset, compares it with what the sink believes, and moves it on.
    private static func move(_ topic: String, _ partition: Int32, from offset: Int64, to next: Int64, _ session: PostgresSession) throws {
        let place: [PostgresParameter] = [.text(topic), .int(partition)]
        try session.execute(
            "INSERT INTO sluice.ingest_offset (topic, partition, next_offset) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING", place,
            cached: true)
        let stored =
            try session.query(
                "SELECT next_offset FROM sluice.ingest_offset WHERE topic = $1 AND partition = $2 FOR UPDATE", place, cached: true
            ).int(0, 0) ?? 0
        guard stored == offset else {
            throw SluiceError(
                .badMessageOrder,
                "Partition \(partition) of \(topic) is at offset \(stored), this sink wanted to write from \(offset).",
                fix: "Nothing: another sink is at work; this one starts again from the stored offset.")
        }
        try session.execute(
            "UPDATE sluice.ingest_offset SET next_offset = $3 WHERE topic = $1 AND partition = $2",
            place + [.int(next)], cached: true)
    }

    private static func keep(_ refused: [RefusedRecord], source: String, _ session: PostgresSession) throws {
        guard !refused.isEmpty else { return }
        try session.execute(
            """
            INSERT INTO sluice.ingest_rejected (type, source, log_offset, code, reason, object, bytes)
            SELECT u.type, $1, u.log_offset, u.code, u.reason, u.object, u.bytes
            FROM unnest($2::text[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::bytea[])
                AS u(type, log_offset, code, reason, object, bytes)
            """,
            [
                .text(source), .text(StoreText.array(refused.map { StoreText.printable($0.source.type) })),
                .text(StoreText.array(refused.map { $0.source.offset.map { String($0) } })),
                .text(StoreText.array(refused.map { String($0.code.rawValue) })),
                .text(StoreText.array(refused.map { StoreText.printable($0.reason) })),
                .text(StoreText.array(refused.map(\.source.text))),
                .text(StoreText.array(refused.map { $0.source.kept.map { "\\x" + Hex.encode($0) } })),
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
