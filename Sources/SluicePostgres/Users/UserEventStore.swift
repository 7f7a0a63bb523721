import SluiceCore
package import SluicePorts
import SluiceValues

/// The events of users that wait for delivery (`sluice.user_event`). Triggers of the schema add them, whichever program changes a user.
package struct UserEventStore: UserEventQueue {
    /// The number of the newest events, and of the newest calls that were given up, that are kept.
    package static let kept = 1_000_000

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    package func take(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent] {
        try await pool.perform { session in
            let taken = try session.query(Self.take, [.int(limit), .int(seconds)], cached: true)
            return try (0..<taken.count).compactMap { try Self.event(taken, $0) }.sorted { $0.id < $1.id }
        }
    }

    /// A later event of a user waits for the row of the earlier one to go.
    private static let take = """
        WITH taken AS (
            SELECT id FROM sluice.user_event e WHERE due <= clock_timestamp()
                AND NOT EXISTS (SELECT FROM sluice.user_event f WHERE f.user_id = e.user_id AND f.id < e.id)
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE sluice.user_event e SET due = clock_timestamp() + $2::bigint * interval '1 second' FROM taken WHERE e.id = taken.id
        RETURNING e.id, kind, user_id, provider, account, published, array_to_json(done), attempts, (extract(epoch FROM at) * 1000)::bigint
        """

    private static func event(_ result: PostgresResult, _ row: Int) throws -> UserEvent? {
        guard let id = result.int(row, 0), let kind = result[row, 1].flatMap({ UserEvent.Kind(rawValue: $0) }), let user = result[row, 2],
            let provider = result[row, 3]
        else { return nil }
        let account = try result.json(row, 4)
        var event = UserEvent(
            id: id, kind: kind,
            account: UserAccount(
                id: user, email: account["email"]?.string, provider: provider, identities: account["identities"] ?? .array([]),
                data: account["data"] ?? .object([]), customData: account["custom_data"] ?? .object([]),
                isDisabled: account["disabled"]?.bool ?? false),
            provider: provider, milliseconds: result.int(row, 8) ?? 0)
        event.isPublished = result.bool(row, 5) ?? false
        event.done = try result.json(row, 6).array?.compactMap(\.string) ?? []
        event.attempts = Int(result.int(row, 7) ?? 0)
        return event
    }

    package func markPublished(_ ids: [Int64]) async throws {
        try await write("UPDATE sluice.user_event SET published = true WHERE id = ANY ($1::bigint[])", ids)
    }

    package func finish(_ ids: [Int64]) async throws { try await write("DELETE FROM sluice.user_event WHERE id = ANY ($1::bigint[])", ids) }

    package func postpone(_ event: UserEvent, seconds: Int) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                """
                UPDATE sluice.user_event SET published = $2, done = $3::text[], attempts = $4,
                    due = clock_timestamp() + $5::bigint * interval '1 second' WHERE id = $1
                """,
                [
                    .int(event.id), .bool(event.isPublished), .text(StoreText.array(event.done)), .int(Int64(event.attempts)),
                    .int(seconds),
                ], cached: true)
        }
    }

    package func bury(_ event: UserEvent, trigger: String, reason: String) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                """
                INSERT INTO sluice.trigger_failure (trigger, attempts, reason, event)
                SELECT $2, $3, $4, to_jsonb(e) - ARRAY['published', 'done', 'attempts', 'due'] FROM sluice.user_event e WHERE id = $1
                """,
                [.int(event.id), .text(trigger), .int(Int64(event.attempts)), .text(StoreText.printable(reason))], cached: true)
        }
    }

    package func lag() async throws -> Double {
        try await pool.perform { session in
            let age = try session.query(
                "SELECT extract(epoch FROM clock_timestamp() - at)::text FROM sluice.user_event ORDER BY id LIMIT 1", cached: true)
            return age.isEmpty ? 0 : age[0, 0].flatMap { Double($0) } ?? 0
        }
    }

    /// Deletes the oldest events, or the oldest calls that were given up.
    ///
    /// - Returns: The number of deleted rows; `RejectionPruning.batch` if more may remain.
    package func prune(keeping count: Int64) async throws -> Int {
        let events = try await RejectionPruning.delete(from: "sluice.user_event", where: "true", keeping: count, pool)
        let failures = try await RejectionPruning.delete(from: "sluice.trigger_failure", where: "true", keeping: count, pool)
        return max(events, failures)
    }

    private func write(_ sql: String, _ ids: [Int64]) async throws {
        try await pool.perform { session in
            _ = try session.execute(sql, [.text(StoreText.array(ids.map { String($0) }))], cached: true)
        }
    }
}
