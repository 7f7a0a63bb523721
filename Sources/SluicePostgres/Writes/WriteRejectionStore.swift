package import SluiceCore
package import SluicePorts
import SluiceValues

/// A write rejection as operators see it.
package struct ExplainedRejection: Hashable, Sendable {
    package var at: String
    package var client: ClientID
    package var code: ErrorCode
    package var reason: String
    /// The role, view or hook that decided, and the clause that was not met. `the device` if the client undid the write by itself. Nil
    /// if no rule decided.
    package var rule: String?
}

/// The store of write rejections (`sluice.rejected_write`). They remain after their acknowledgement, so that user input is not
/// lost.
package struct WriteRejectionStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the client's first unacknowledged compensating writes, ascending. Each is complete; at most 1,000 are read.
    ///
    /// - Parameters:
    ///   - last: Compensating writes up to this number are excluded.
    ///   - bytes: The size of values after which no further compensating write is added.
    package func open(
        client: ClientID, after last: UInt64 = 0, bytes: Int = Limits.compensationBytes
    ) async throws -> [(compensation: UInt64, writes: [WriteRejection])] {
        try await pool.perform { session in
            let result = try session.query(
                """
                WITH sizes AS (
                    SELECT compensation, sum(octet_length(values::text)) AS size FROM sluice.rejected_write
                    WHERE client = $1 AND compensation > $2 AND NOT acknowledged GROUP BY compensation ORDER BY compensation LIMIT 1000),
                chosen AS (
                    SELECT max(compensation) AS last FROM (
                        SELECT compensation, sum(size) OVER (ORDER BY compensation) - size AS before FROM sizes) AS sums
                    WHERE before < $3)
                SELECT compensation, changeset, type, key_value, code, reason, values, cause, fields FROM sluice.rejected_write
                WHERE client = $1 AND compensation > $2 AND compensation <= (SELECT last FROM chosen) AND NOT acknowledged
                ORDER BY compensation, id
                """, [.int(Int64(clamping: client.rawValue)), .int(Int64(clamping: last)), .int(bytes)], cached: true)
            var all: [(compensation: UInt64, writes: [WriteRejection])] = []
            for row in 0..<result.count {
                let compensation = UInt64(clamping: result.int(row, 0) ?? 0)
                if all.last?.compensation != compensation { all.append((compensation, [])) }
                all[all.count - 1].writes.append(try Self.record(result, row))
            }
            return all
        }
    }

    /// Marks compensating writes up to this number as acknowledged. They are not sent again.
    package func acknowledge(client: ClientID, upTo compensation: UInt64) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "UPDATE sluice.rejected_write SET acknowledged = true WHERE client = $1 AND compensation <= $2 AND NOT acknowledged",
                [.int(Int64(clamping: client.rawValue)), .int(Int64(clamping: compensation))], cached: true)
        }
    }

    /// Stores write rejections that a client reports. They count as acknowledged, because the client has undone the writes itself.
    package func keepReported(client: ClientID, _ records: [WriteRejection]) async throws {
        try await pool.transact { session in
            _ = try Self.insert(records, client: client, isAcknowledged: true, session)
        }
    }

    /// Deletes the oldest rejections that are acknowledged, or whose client replica is gone.
    ///
    /// - Parameter count: The number of newest ids that are kept.
    /// - Returns: The number of deleted rejections; `RejectionPruning.batch` if more may remain.
    package func prune(keeping count: Int64) async throws -> Int {
        try await RejectionPruning.delete(
            from: "sluice.rejected_write",
            where: "(acknowledged OR NOT EXISTS (SELECT FROM sluice.client AS c WHERE c.id = rejected_write.client))", keeping: count, pool)
    }

    /// Deletes the client replica with the most unacknowledged rejections if all replicas together have more than `count`. Its device
    /// performs a client reset, and `prune` may delete its rejections.
    ///
    /// - Returns: `true` if it deleted one. The caller repeats the call.
    package func deleteLargest(keeping count: Int64) async throws -> Bool {
        try await pool.perform { session in
            try session.execute(
                """
                WITH open AS (
                    SELECT c.id, count(*) AS number FROM sluice.rejected_write AS w JOIN sluice.client AS c ON c.id = w.client
                    WHERE NOT w.acknowledged GROUP BY c.id)
                DELETE FROM sluice.client WHERE id = (SELECT id FROM open ORDER BY number DESC, id LIMIT 1)
                    AND (SELECT sum(number) FROM open) > $1::bigint
                """, [.int(count)]) > 0
        }
    }

    /// Removes the values of the oldest rejections if all values together take more than `bytes`.
    ///
    /// Reads the whole table if its size on the disk exceeds `bytes`.
    /// - Returns: The number of rejections that lost their values; `RejectionPruning.batch` if more may follow.
    package func dropValues(keeping bytes: Int) async throws -> Int {
        try await pool.perform { session in
            let size = try session.query("SELECT pg_total_relation_size('sluice.rejected_write')").int(0, 0) ?? 0
            guard size > bytes else { return 0 }
            return try session.execute(
                """
                UPDATE sluice.rejected_write SET values = '{}', rule = concat(rule, '; the values are not kept') WHERE id IN (
                    SELECT id FROM (
                        SELECT id, sum(pg_column_size(values)) OVER (ORDER BY id DESC) AS total FROM sluice.rejected_write
                        WHERE pg_column_size(values) > pg_column_size('{}'::jsonb)) AS sizes
                    WHERE total > $1::bigint ORDER BY id LIMIT \(RejectionPruning.batch))
                """, [.int(bytes)])
        }
    }

    /// Returns the user's last write rejections of one object, newest first, acknowledged or not.
    package func last(_ limit: Int, of object: ObjectKey, user: String) async throws -> [ExplainedRejection] {
        try await pool.perform { session in
            let result = try session.query(
                """
                SELECT \(StoreText.time("w.at")), w.client, w.code, w.reason, w.rule
                FROM sluice.rejected_write w JOIN sluice.client c ON c.id = w.client
                WHERE w.type = $1 AND w.key = $2 AND c.user_id = $3 ORDER BY w.id DESC LIMIT $4
                """,
                [.text(object.type), .text(Self.key(of: object)), .text(user), .int(Int64(limit))], cached: true)
            return (0..<result.count).map { row in
                ExplainedRejection(
                    at: result[row, 0] ?? "", client: ClientID(rawValue: UInt64(clamping: result.int(row, 1) ?? 0)),
                    code: Self.code(result, row, 2),
                    reason: result[row, 3] ?? "", rule: result[row, 4])
            }
        }
    }

    private static func code(_ result: PostgresResult, _ row: Int, _ column: Int) -> ErrorCode {
        result.int(row, column).flatMap { UInt16(exactly: $0) }.flatMap { ErrorCode(rawValue: $0) } ?? .compensatingWrite
    }

    private static func record(_ result: PostgresResult, _ row: Int) throws -> WriteRejection {
        let key = ExtendedJSON.value(try result.json(row, 3))
        var values: [String: Value] = [:]
        for member in try result.json(row, 6).members ?? [] { values[member.key] = ExtendedJSON.value(member.value) }
        return WriteRejection(
            changeset: UInt64(clamping: result.int(row, 1) ?? 0), object: ObjectKey(type: result[row, 2] ?? "", key: key),
            code: code(result, row, 4), cause: result[row, 7].flatMap { RejectionCause(rawValue: $0) }, reason: result[row, 5] ?? "",
            fields: (try result.json(row, 8).array ?? []).compactMap(\.string), values: values)
    }

    /// The maximum size of a key in the table's index, in bytes. PostgreSQL bounds index entries; a hash distinguishes longer keys.
    private static let keyBytes = 1_000

    /// Returns the key as the index holds it.
    private static func key(of object: ObjectKey) -> String {
        let text = StoreText.printable(StoreText.key(object.key))
        guard text.utf8.count > keyBytes else { return text }
        // A character cut in half decodes to U+FFFD, the same one each time.
        return String(decoding: text.utf8.prefix(keyBytes), as: UTF8.self) + "… \(ValueHash(object.key).rawValue)"
    }

    /// Stores rejections within a transaction.
    ///
    /// - Parameter isAcknowledged: `true` if the client need not receive them.
    /// - Returns: The number of the compensating write.
    static func insert(
        _ records: [WriteRejection], client: ClientID, isAcknowledged: Bool = false, _ session: PostgresSession
    ) throws -> UInt64 {
        let next = try session.query("SELECT nextval('sluice.compensation')", cached: true).int(0, 0) ?? 0
        for record in records {
            try session.execute(
                """
                INSERT INTO sluice.rejected_write (compensation, client, changeset, type, key, key_value, code, reason, values, rule,
                    cause, fields, acknowledged)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                """,
                [
                    .int(next), .int(Int64(clamping: client.rawValue)), .int(Int64(clamping: record.changeset)),
                    .text(record.object.type), .text(key(of: record.object)),
                    .text(StoreText.printable(ExtendedJSON.json(record.object.key)).text), .int(record.code.rawValue),
                    .text(StoreText.printable(record.reason)),
                    .text(StoreText.printable(ExtendedJSON.json(record.values)).text),
                    record.rule.map { .text(StoreText.printable($0)) } ?? .null, .text(record.cause?.rawValue ?? ""),
                    .text(JSON.array(record.fields.map { .string($0) }).text), .bool(isAcknowledged),
                ], cached: true)
        }
        return UInt64(clamping: next)
    }
}
