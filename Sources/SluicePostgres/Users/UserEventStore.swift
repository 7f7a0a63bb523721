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
        try await take(Self.take(for: .triggers), limit, seconds)
    }

    package func takeUnpublished(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent] {
        try await take(Self.take(for: .topic), limit, seconds)
    }

    private func take(_ statement: String, _ limit: Int, _ seconds: Int) async throws -> [UserEvent] {
        try await pool.perform { session in
            let taken = try session.query(statement, [.int(limit), .int(seconds)], cached: true)
            return try (0..<taken.count).compactMap { try Self.event(taken, $0) }.sorted { $0.id < $1.id }
        }
    }

    /// Returns SQL by which a later event of a user waits until the earlier one has reached the destination.
    private static func take(for destination: UserEventDestination) -> String {
        let (done, due) = (destination.column, destination.lease)
        return """
            WITH taken AS (
                SELECT id FROM sluice.user_event e WHERE NOT \(done) AND \(due) <= clock_timestamp()
                    AND NOT EXISTS (SELECT FROM sluice.user_event f WHERE f.user_id = e.user_id AND f.id < e.id AND NOT f.\(done))
                ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
            UPDATE sluice.user_event e SET \(due) = clock_timestamp() + $2::bigint * interval '1 second' FROM taken WHERE e.id = taken.id
            RETURNING e.id, kind, user_id, provider, account, array_to_json(done), attempts, (extract(epoch FROM at) * 1000)::bigint
            """
    }

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
            provider: provider, milliseconds: result.int(row, 7) ?? 0)
        event.done = try result.json(row, 5).array?.compactMap(\.string) ?? []
        event.attempts = Int(result.int(row, 6) ?? 0)
        return event
    }

    package func keep(unpublished ids: [Int64], seconds: Int) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "UPDATE sluice.user_event SET publish_due = clock_timestamp() + $2::bigint * interval '1 second' WHERE id = ANY ($1::bigint[])",
                [.text(StoreText.array(ids.map { String($0) })), .int(seconds)], cached: true)
        }
    }

    /// The deletion is a statement of its own: it sees what the caller for the other destination has stored meanwhile.
    package func finish(
        _ ids: [Int64], at destination: UserEventDestination, of destinations: Set<UserEventDestination>
    ) async throws -> Set<Int64> {
        let places: [PostgresParameter] = [.text(StoreText.array(ids.map { String($0) }))]
        return try await pool.perform { session in
            try session.execute(
                "UPDATE sluice.user_event SET \(destination.column) = true WHERE id = ANY ($1::bigint[])", places, cached: true)
            let gone = try session.query(
                "DELETE FROM sluice.user_event WHERE id = ANY ($1::bigint[]) AND \(Self.isDelivered(to: destinations)) RETURNING id",
                places, cached: true)
            return Set((0..<gone.count).compactMap { gone.int($0, 0) })
        }
    }
    package func discard(_ limit: Int, of destinations: Set<UserEventDestination>) async throws -> [UserEvent.Kind: Int] {
        let statement = """
            WITH gone AS (
                DELETE FROM sluice.user_event WHERE id = ANY (ARRAY(
                    SELECT id FROM sluice.user_event WHERE \(Self.isDelivered(to: destinations)) ORDER BY id LIMIT $1
                    FOR UPDATE SKIP LOCKED))
                RETURNING kind)
            SELECT kind, count(*) FROM gone GROUP BY kind
            """
        return try await pool.perform { session in
            let counts = try session.query(statement, [.int(limit)], cached: true)
            return (0..<counts.count).reduce(into: [:]) { removed, row in
                if let kind = counts[row, 0].flatMap(UserEvent.Kind.init) { removed[kind] = counts.int(row, 1).map { Int($0) } }
            }
        }
    }

    /// Returns the condition of events that have reached all destinations of an app, and that no gateway holds for another destination.
    private static func isDelivered(to destinations: Set<UserEventDestination>) -> String {
        UserEventDestination.allCases.map { destination in
            destinations.contains(destination)
                ? destination.column : "(\(destination.column) OR \(destination.lease) <= clock_timestamp())"
        }.joined(separator: " AND ")
    }

    package func postpone(_ event: UserEvent, seconds: Int) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                """
                UPDATE sluice.user_event SET done = $2::text[], attempts = $3,
                    due = clock_timestamp() + $4::bigint * interval '1 second' WHERE id = $1
                """,
                [.int(event.id), .text(StoreText.array(event.done)), .int(Int64(event.attempts)), .int(seconds)], cached: true)
        }
    }

    package func bury(_ event: UserEvent, trigger: String, reason: String) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                """
                INSERT INTO sluice.trigger_failure (trigger, attempts, reason, event)
                SELECT $2, $3, $4, to_jsonb(e) - ARRAY['published', 'triggered', 'done', 'attempts', 'due', 'publish_due'] FROM sluice.user_event e WHERE id = $1
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
}

extension UserEventDestination {
    /// The column that notes the arrival.
    fileprivate var column: String {
        switch self {
        case .topic: "published"
        case .triggers: "triggered"
        }
    }

    /// The column with the end of the lease.
    fileprivate var lease: String {
        switch self {
        case .topic: "publish_due"
        case .triggers: "due"
        }
    }
}
