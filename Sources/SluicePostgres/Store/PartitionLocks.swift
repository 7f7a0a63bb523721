import SluiceCore

/// The partitions of topics that this gateway works on, as advisory locks of one connection. The locks end with it.
///
/// Each gateway that reads a topic holds a shared lock of the topic, by which the gateways are counted. For each of its partitions
/// it holds an exclusive lock. It takes at most its share, ⌈partitions ÷ gateways⌉, and releases the excess. Thus every partition
/// is read, and the work is spread (PostgreSQL, Explicit Locking, Advisory Locks).
actor PartitionLocks {
    private let conninfo: String
    private var connection: PostgresConnection?
    /// The topics in which this gateway is counted, with the partitions that it holds.
    private var held: [String: Set<Int32>] = [:]

    init(_ conninfo: String) { self.conninfo = conninfo }

    /// Takes, keeps or releases partitions of a topic, so that this gateway holds its share. Only one call per topic may run at a
    /// time.
    ///
    /// - Parameter kept: The partitions that are not released, even beyond the share.
    /// - Returns: The partitions that are held now, and the number that is this gateway's share.
    /// - Throws: The error of the connection, which is closed: the partitions of all topics are then free for other gateways.
    func claim(
        _ topic: String, of partitions: Int32, keeping kept: Set<Int32> = []
    ) async throws -> (held: Set<Int32>, share: Int) {
        let connection = try await usable()
        do {
            return try await claim(topic, of: partitions, keeping: kept, by: connection)
        } catch {
            await giveUp(connection)
            throw error
        }
    }

    private func claim(
        _ topic: String, of partitions: Int32, keeping kept: Set<Int32>, by connection: PostgresConnection
    ) async throws -> (held: Set<Int32>, share: Int) {
        if held[topic] == nil {
            // The gateway counts itself before it computes its share.
            _ = try await connection.query("SELECT pg_advisory_lock_shared(\(Self.gateways))", [.text(topic)])
            held[topic] = []
        }
        let count = max(try await connection.query(Self.count, [.text(topic)]).int(0, 0) ?? 1, 1)
        let share = Int((Int64(partitions) + count - 1) / count)
        var mine = held[topic] ?? []
        if mine.count > share {
            let surplus = mine.sorted().suffix(mine.count - share).filter { !kept.contains($0) }
            _ = try await connection.query(Self.give, [.text(topic), .text(StoreText.array(surplus.map(String.init)))])
            mine.subtract(surplus)
        } else if mine.count < share {
            let free = (0..<partitions).filter { !mine.contains($0) }
            // Others may still hold more than their share. Then fewer locks are free, and the next call takes the rest.
            let taken = try await connection.query(
                Self.take, [.text(topic), .text(StoreText.array(free.map(String.init))), .int(share - mine.count)])
            for row in 0..<taken.count { mine.insert(Int32(taken.int(row, 0) ?? 0)) }
        }
        held[topic] = mine
        return (mine, share)
    }

    /// Releases all partitions of a topic and leaves its count of gateways.
    func release(_ topic: String) async {
        guard let mine = held.removeValue(forKey: topic), let connection else { return }
        do {
            _ = try await connection.query(Self.give, [.text(topic), .text(StoreText.array(mine.sorted().map(String.init)))])
            _ = try await connection.query("SELECT pg_advisory_unlock_shared(\(Self.gateways))", [.text(topic)])
        } catch {
            await giveUp(connection)
        }
    }

    /// Closes a connection. After a query without an answer it may hold unknown locks, which end with it.
    private func giveUp(_ broken: PostgresConnection) async {
        if connection === broken {
            held.removeAll()
            connection = nil
        }
        await broken.close()
    }

    private static let gateways = "hashtextextended('sluice.ingest ' || $1::text, 0)"
    private static let partition = "hashtextextended('sluice.ingest ' || $1::text || '/' || p, 0)"
    private static let give = "SELECT pg_advisory_unlock(\(partition)) FROM unnest($2::int[]) AS p"
    /// SQL that locks at most `$3` free partitions. The LIMIT ends the scan, so that no further lock is tried.
    private static let take = "SELECT p FROM unnest($2::int[]) AS p WHERE pg_try_advisory_lock(\(partition)) LIMIT $3"
    /// SQL that counts the holders of a topic's shared lock. The view `pg_locks` shows the 64 bits of a key in two halves.
    private static let count = """
        SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (classid::bigint << 32) | objid::bigint = \(gateways)
        """

    private func usable() async throws -> PostgresConnection {
        if let connection, await connection.isUsable { return connection }
        // The locks of the broken connection have ended.
        held.removeAll()
        let fresh = try await PostgresConnection.connect(conninfo)
        // Another call may have connected during the `await`.
        if let connection, await connection.isUsable {
            await fresh.close()
            return connection
        }
        held.removeAll()
        connection = fresh
        return fresh
    }
}
