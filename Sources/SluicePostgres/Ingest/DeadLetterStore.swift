import SluiceCore

/// A rejected asymmetric object, with the data needed to send it again.
package struct DeadLetter: Sendable {
    package var id: Int64
    package var type: String
    /// The source: `topic/partition`, `device/USER/CLIENT`, or `direct`.
    package var source: String
    /// The offset in the partition; nil if the object came from no log.
    package var offset: Int64?
    package var code: Int
    package var reason: String
    /// The object as received, as text.
    package var object: String
    /// The object as received, as bytes; nil if `object` represents it exactly.
    package var bytes: [UInt8]?
    package var at: String
    /// `true` if `object` or `bytes` may be truncated.
    package var isCut: Bool
    /// `true` once the dead-letter topic has the letter.
    package var isPublished: Bool

    /// - Parameter result: Rows of `DeadLetterStore.read`.
    fileprivate init(_ result: PostgresResult, row: Int) {
        id = result.int(row, 0) ?? 0
        type = result[row, 1] ?? ""
        source = result[row, 2] ?? ""
        offset = result.int(row, 3)
        code = Int(result.int(row, 4) ?? 0)
        reason = result[row, 5] ?? ""
        object = result[row, 6] ?? ""
        bytes = result.bytes(row, 7)
        isCut = result.bool(row, 8) ?? false
        at = result[row, 9] ?? ""
        isPublished = result.bool(row, 10) ?? false
    }
}

/// The store of dead letters (`sluice.ingest_rejected`).
package struct DeadLetterStore: Sendable {
    /// A selection of dead letters. A field that is nil matches all.
    package struct Filter: Sendable {
        package var type: String?
        package var code: Int?
        package var ids: [Int64]?
        package var after: Int64
        package var through: Int64

        /// - Parameters:
        ///   - after: Ids up to this one are excluded.
        ///   - through: Ids beyond this one are excluded.
        package init(type: String? = nil, code: Int? = nil, ids: [Int64]? = nil, after: Int64 = 0, through: Int64 = .max) {
            self.type = type
            self.code = code
            self.ids = ids
            self.after = after
            self.through = through
        }
    }

    /// A turn to publish to the dead-letter topic.
    ///
    /// If several gateways act as the publisher, only the last to take a turn may begin. A lock would not suffice: its connection
    /// may break while its holder's records are still in flight.
    package struct Turn: Sendable {
        let number: Int64
        /// The time for which records of earlier turns may still be in flight.
        package let rest: Duration
    }

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the selected letters, oldest first.
    package func list(_ filter: Filter, limit: Int) async throws -> [DeadLetter] {
        try await read("\(Self.matches) ORDER BY id LIMIT $6", filter.parameters + [.int(limit)])
    }

    /// Returns letters, newest first. Each has only the first `characters` characters of its text and no bytes.
    package func newest(_ limit: Int, characters: Int) async throws -> [DeadLetter] {
        try await read("NOT gone ORDER BY id DESC LIMIT $1", [.int(limit)], object: "left(object, \(characters)), NULL::bytea, true")
    }

    /// Returns the greatest id; 0 if there is no letter.
    package func newest() async throws -> Int64 {
        try await pool.perform { try $0.query("SELECT max(id) FROM sluice.ingest_rejected WHERE NOT gone").int(0, 0) ?? 0 }
    }

    package func count(_ filter: Filter) async throws -> Int {
        try await pool.perform { session in
            let result = try session.query("SELECT count(*) FROM sluice.ingest_rejected WHERE \(Self.matches)", filter.parameters)
            return Int(result.int(0, 0) ?? 0)
        }
    }

    /// Returns letters that the dead-letter topic does not have yet, oldest first.
    ///
    /// - Parameters:
    ///   - characters: The maximum length of an object's text in characters, and of its bytes. The rest is truncated.
    ///   - bytes: The total size after which no further letter is added.
    package func unpublished(limit: Int, characters: Int, bytes: Int) async throws -> [DeadLetter] {
        try await read(
            """
            id IN (
                SELECT id FROM (
                    SELECT id, sum(size) OVER (ORDER BY id) - size AS before FROM (
                        SELECT id, least(octet_length(object), $2) + least(coalesce(octet_length(bytes), 0), $2) AS size
                        FROM sluice.ingest_rejected WHERE NOT published ORDER BY id LIMIT $1) AS sizes) AS sums
                WHERE before < $3)
            ORDER BY id
            """, [.int(limit), .int(characters), .int(bytes)],
            object: """
                left(object, $2), substring(bytes FROM 1 FOR $2),
                char_length(object) > $2 OR coalesce(octet_length(bytes), 0) > $2
                """)
    }

    /// Marks letters that the dead-letter topic has acknowledged, and deletes those that have been sent again.
    ///
    /// A letter may be sent again at the same time. Each side first writes its own mark and then reads the other's, so that one of
    /// them sees both.
    package func markPublished(_ ids: [Int64]) async throws {
        try await write("UPDATE sluice.ingest_rejected SET published = true WHERE id = ANY ($1::bigint[]) AND NOT published", ids)
        try await write("DELETE FROM sluice.ingest_rejected WHERE id = ANY ($1::bigint[]) AND gone", ids)
    }

    /// Takes a turn. The holders of earlier turns cannot begin to publish any more.
    ///
    /// - Parameter longest: The upper bound of `rest`, even if the server's clock jumps.
    package func takeTurn(longest: Duration) async throws -> Turn {
        try await pool.perform { session in
            let taken = try session.query(Self.take, [.int(Self.milliseconds(longest))], cached: true)
            return Turn(number: taken.int(0, 0) ?? 0, rest: .milliseconds(taken.int(0, 1) ?? 0))
        }
    }

    /// Announces that records sent from now on may be in flight for at most `time`.
    ///
    /// - Returns: `false` if another gateway has taken a turn since. The caller must then send nothing.
    package func begin(_ turn: Turn, for time: Duration) async throws -> Bool {
        try await pool.perform { try $0.query(Self.begin, [.int(turn.number), .int(Self.milliseconds(time))], cached: true).count == 1 }
    }

    /// Announces that no record of the turn is in flight.
    package func end(_ turn: Turn) async throws {
        try await pool.perform { session in
            let sql = "UPDATE sluice.dead_letter_turn SET until = clock_timestamp() WHERE number = $1"
            _ = try session.execute(sql, [.int(turn.number)], cached: true)
        }
    }

    private static func milliseconds(_ time: Duration) -> Int64 { Int64(time / .milliseconds(1)) }

    private static let take = """
        INSERT INTO sluice.dead_letter_turn AS turn (number, until) VALUES (1, clock_timestamp())
        ON CONFLICT ((true)) DO UPDATE SET number = turn.number + 1
        RETURNING number, least($1, greatest(0, ceil(extract(epoch FROM until - clock_timestamp()) * 1000)))::bigint
        """
    private static let begin = """
        UPDATE sluice.dead_letter_turn SET until = greatest(until, clock_timestamp() + $2::bigint * interval '1 millisecond')
        WHERE number = $1 RETURNING number
        """

    /// Marks letters that are about to be sent again, so that their next rejection is a new letter.
    package func replay(_ ids: [Int64]) async throws {
        try await write("UPDATE sluice.ingest_rejected SET replayed = true WHERE id = ANY ($1::bigint[])", ids)
    }

    /// Removes letters that have been sent again.
    ///
    /// - Parameter untold: `true` to remove also letters that the dead-letter topic does not have. Otherwise they remain until it
    ///   has them.
    package func leave(_ ids: [Int64], untold: Bool) async throws {
        // This order is the counterpart of `markPublished`: first the own mark, then the other's.
        if !untold { try await write("UPDATE sluice.ingest_rejected SET gone = true WHERE id = ANY ($1::bigint[])", ids) }
        let condition = untold ? "" : "AND published"
        try await write("DELETE FROM sluice.ingest_rejected WHERE id = ANY ($1::bigint[]) \(condition)", ids)
    }

    /// Deletes the oldest letters, by id.
    ///
    /// - Parameters:
    ///   - count: The number of newest ids that are kept.
    ///   - untold: `true` to delete also letters that the dead-letter topic does not have, as an app without that topic needs.
    /// - Returns: The number of deleted letters; `RejectionPruning.batch` if more may remain.
    package func prune(keeping count: Int64, untold: Bool) async throws -> Int {
        try await RejectionPruning.delete(from: "sluice.ingest_rejected", where: untold ? "true" : "published", keeping: count, pool)
    }

    private func write(_ sql: String, _ ids: [Int64]) async throws {
        try await pool.perform { session in
            _ = try session.execute(sql, [.text(StoreText.array(ids.map { String($0) }))], cached: true)
        }
    }

    private static let matches = """
        ($1::text IS NULL OR type = $1) AND ($2::int IS NULL OR code = $2) AND ($3::bigint[] IS NULL OR id = ANY ($3)) \
        AND id > $4 AND id <= $5 AND NOT gone
        """

    private func read(
        _ condition: String, _ parameters: [PostgresParameter], object: String = "object, bytes, false"
    ) async throws -> [DeadLetter] {
        try await pool.perform { session in
            let result = try session.query(
                """
                SELECT id, type, source, log_offset, code, reason, \(object), \(StoreText.time("at")), published
                FROM sluice.ingest_rejected WHERE \(condition)
                """, parameters)
            return (0..<result.count).map { DeadLetter(result, row: $0) }
        }
    }
}

extension DeadLetterStore.Filter {
    fileprivate var parameters: [PostgresParameter] {
        [
            .optional(type), .optional(code.map { String($0) }),
            .optional(ids.map { ids in StoreText.array(ids.map { String($0) }) }), .int(after), .int(through),
        ]
    }
}
