package import SluiceCore

/// An object that is kept instead of written.
package struct RefusedRecord: Hashable, Sendable {
    package var type: String
    package var code: ErrorCode
    package var reason: String
    /// The object as it came, as text.
    package var object: String

    package init(type: String, code: ErrorCode, reason: String, object: String) {
        self.type = type
        self.code = code
        self.reason = reason
        self.object = object
    }
}

/// What a run of records of one partition came to.
package struct IngestBatch: Sendable {
    package var topic: String
    package var partition: Int32
    /// The offset of the first record, and the offset after the last.
    package var offsets: Range<Int64>
    /// Type names and rows in index order.
    package var accepted: [(type: String, row: Row)]
    package var refused: [RefusedRecord]

    package init(
        topic: String, partition: Int32, offsets: Range<Int64>, accepted: [(type: String, row: Row)], refused: [RefusedRecord] = []
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
    private let locks: IngestLocks

    /// - Parameter conninfo: For the connection of its own that holds the locks.
    package init(pool: PostgresPool, conninfo: String, tables: @escaping PostgresRowStore.Tables) {
        self.pool = pool
        self.tables = tables
        locks = IngestLocks(conninfo)
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
        var byType: [String: [Row]] = [:]
        for (type, row) in batch.accepted { byType[type, default: []].append(row) }
        let inserts = try byType.sorted { $0.key < $1.key }.map { BulkInsert(try tables($0.key), $0.value) }
        return try await pool.transact { session in
            try Self.move(batch.topic, batch.partition, from: batch.offsets.lowerBound, to: batch.offsets.upperBound, session)
            var refused = batch.refused
            var written = 0
            for insert in inserts { written += try insert.run(session, refused: &refused) }
            try Self.keep(refused, source: "\(batch.topic)/\(batch.partition)", session)
            return (written, refused.count - batch.refused.count)
        }
    }

    /// Sets the stored offset back to 0, for a topic that was made anew.
    /// - Throws: `badMessageOrder` when the stored offset is not `offset`.
    package func rewind(topic: String, partition: Int32, from offset: Int64) async throws {
        try await pool.transact { session in try Self.move(topic, partition, from: offset, to: 0, session) }
    }

    /// Writes objects that do not come from the log (the embedded log's way), acknowledged on commit.
    @discardableResult
    package func insert(type: String, rows: [Row], refused: [RefusedRecord] = []) async throws -> (written: Int, refused: Int) {
        let insert = BulkInsert(try tables(type), rows)
        return try await pool.transact { session in
            var kept = refused
            let written = try insert.run(session, refused: &kept)
            try Self.keep(kept, source: "direct", session)
            return (written, kept.count - refused.count)
        }
    }

    /// Tries to become the one sink of a topic; held until `release` or the loss of the connection.
    package func acquire(topic: String) async throws -> Bool {
        do { return try await locks.acquire(topic) } catch { throw PostgresFailure.forPort(error) }
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
            INSERT INTO sluice.ingest_rejected (type, source, code, reason, object)
            SELECT u.type, $1, u.code, u.reason, u.object FROM unnest($2::text[], $3::int[], $4::text[], $5::text[]) AS u(type, code, reason, object)
            """,
            [
                .text(source), .text(StoreText.array(refused.map { StoreText.printable($0.type) })),
                .text(StoreText.array(refused.map { String($0.code.rawValue) })),
                .text(StoreText.array(refused.map { StoreText.printable($0.reason) })),
                .text(StoreText.array(refused.map { StoreText.printable($0.object) })),
            ], cached: true)
    }
}

/// The connection that holds the sinks' advisory locks.
private actor IngestLocks {
    private let conninfo: String
    private var connection: PostgresConnection?
    private var held: Set<String> = []

    init(_ conninfo: String) { self.conninfo = conninfo }

    func acquire(_ topic: String) async throws -> Bool {
        let connection = try await usable()
        if held.contains(topic) { return true }
        let result = try await connection.query(
            "SELECT pg_try_advisory_lock(hashtextextended('sluice.ingest ' || $1::text, 0))", [.text(topic)])
        guard result.bool(0, 0) == true else { return false }
        // Two calls for one topic: the second has only raised the lock's count.
        if !held.insert(topic).inserted { try await unlock(topic, connection) }
        return true
    }

    func release(_ topic: String) async {
        guard held.remove(topic) != nil, let connection else { return }
        do {
            try await unlock(topic, connection)
        } catch {
            // Without an answer the lock may still be held; it goes with its connection.
            held.removeAll()
            self.connection = nil
            await connection.close()
        }
    }

    private func unlock(_ topic: String, _ connection: PostgresConnection) async throws {
        try await connection.query("SELECT pg_advisory_unlock(hashtextextended('sluice.ingest ' || $1::text, 0))", [.text(topic)])
    }

    private func usable() async throws -> PostgresConnection {
        if let connection, await connection.isUsable { return connection }
        held.removeAll()
        let fresh = try await PostgresConnection.connect(conninfo)
        // Somebody else may have connected meanwhile.
        if let connection, await connection.isUsable {
            await fresh.close()
            return connection
        }
        held.removeAll()
        connection = fresh
        return fresh
    }
}
