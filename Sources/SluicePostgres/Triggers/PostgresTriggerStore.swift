import SluiceCore
package import SluicePorts
import SluiceValues

/// The cursors of database triggers (`sluice.trigger_cursor`), and their calls that were given up (`sluice.trigger_failure`).
package struct PostgresTriggerStore: TriggerStore {
    private let pool: PostgresPool
    private let locks: PartitionLocks

    /// - Parameter conninfo: The server for a separate connection that holds the partition locks.
    package init(pool: PostgresPool, conninfo: String) {
        self.pool = pool
        locks = PartitionLocks(conninfo)
    }

    package func claim(_ topic: TriggerTopic, keeping kept: Set<Int32>) async throws -> TriggerClaim {
        do {
            let claim = try await locks.claim(topic.lock, of: topic.partitions, keeping: kept)
            return TriggerClaim(partitions: claim.held, share: claim.share)
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    package func release(_ topic: TriggerTopic) async { await locks.release(topic.lock) }

    package func begin(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "\(Self.begin) ON CONFLICT (trigger, topic, partition) DO NOTHING", Self.places(topic, ends), cached: true)
        }
    }

    package func open(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws -> [Int32: TriggerCursor] {
        try await pool.perform { session in
            let found = try session.query("\(Self.begin) \(Self.next)", Self.places(topic, ends), cached: true)
            let cursors = (0..<found.count).compactMap { row -> (Int32, TriggerCursor)? in
                guard let partition = found.int(row, 0).flatMap({ Int32(exactly: $0) }), let lsn = found[row, 1].flatMap({ LSN($0) }),
                    let ordinal = found.int(row, 2).flatMap({ UInt32(exactly: $0) }), let offset = found.int(row, 3),
                    let turn = found.int(row, 4)
                else { return nil }
                return (partition, TriggerCursor(position: Position(lsn: lsn, ordinal: ordinal), offset: offset, turn: turn))
            }
            return Dictionary(cursors) { first, _ in first }
        }
    }

    private static func places(_ topic: TriggerTopic, _ ends: [Int32: Int64]) -> [PostgresParameter] {
        let ends = ends.sorted { $0.key < $1.key }
        return [
            .text(topic.trigger), .text(topic.topic), .text(StoreText.array(ends.map { String($0.key) })),
            .text(StoreText.array(ends.map { String($0.value) })),
        ]
    }

    /// A commit after this statement has a greater position than the one that a new cursor gets.
    private static let begin = """
        INSERT INTO sluice.trigger_cursor AS c (trigger, topic, partition, lsn, ordinal, next_offset)
        SELECT $1::text, $2::text, p, pg_current_wal_insert_lsn(), 0, o FROM unnest($3::int[], $4::bigint[]) AS u(p, o) ORDER BY p
        """

    private static let next = """
        ON CONFLICT (trigger, topic, partition) DO UPDATE SET turn = c.turn + 1
        RETURNING partition, lsn, ordinal, next_offset, turn
        """

    package func save(_ topic: TriggerTopic, _ cursors: [Int32: TriggerCursor]) async throws -> Set<Int32> {
        let rows = cursors.sorted { $0.key < $1.key }
        return try await pool.perform { session in
            func array(_ value: ((key: Int32, value: TriggerCursor)) -> String) -> PostgresParameter {
                .text(StoreText.array(rows.map(value)))
            }
            let stored = try session.query(
                Self.save,
                [
                    .text(topic.trigger), .text(topic.topic), array { String($0.key) }, array { $0.value.position.lsn.description },
                    array { String($0.value.position.ordinal) }, array { String($0.value.offset) }, array { String($0.value.turn) },
                ], cached: true)
            return Set((0..<stored.count).compactMap { stored.int($0, 0).flatMap { Int32(exactly: $0) } })
        }
    }

    private static let save = """
        UPDATE sluice.trigger_cursor c SET lsn = u.lsn, ordinal = u.ordinal, next_offset = u.next_offset
        FROM unnest($3::int[], $4::pg_lsn[], $5::bigint[], $6::bigint[], $7::bigint[]) AS u(partition, lsn, ordinal, next_offset, turn)
        WHERE c.trigger = $1 AND c.topic = $2 AND c.partition = u.partition AND c.turn = u.turn
        RETURNING c.partition
        """

    package func forget(_ triggers: [String]) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "DELETE FROM sluice.trigger_cursor WHERE trigger = ANY ($1::text[])", [.text(StoreText.array(triggers))], cached: true)
        }
    }

    package func bury(_ failure: TriggerFailure) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "INSERT INTO sluice.trigger_failure (trigger, attempts, reason, event) VALUES ($1, $2, $3, $4)",
                [
                    .text(failure.trigger), .int(Int64(failure.attempts)), .text(StoreText.printable(failure.reason)),
                    .text(StoreText.printable(failure.event).text),
                ], cached: true)
        }
    }
}

extension TriggerTopic {
    /// The name of the topic's locks for the trigger. No topic has it, as names of topics have no space.
    fileprivate var lock: String { "trigger \(trigger) \(topic)" }
}
