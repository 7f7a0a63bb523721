import SluiceCore

/// Which gateway reads which partitions of the ingest topics, as advisory locks of one connection: what a gateway had is free as
/// soon as the gateway, or its connection, ends.
///
/// Every gateway that reads a topic holds one lock of it together with the others, by which they are counted, and one alone for
/// each partition that it has. None takes more than its share, ⌈partitions ÷ gateways⌉, and each gives back what it has beyond
/// that: every partition is read, and the work is spread (PostgreSQL, Explicit Locking, Advisory Locks).
actor PartitionLocks {
    private let conninfo: String
    private var connection: PostgresConnection?
    /// The topics in which this gateway is counted, each with the partitions that it has.
    private var held: [String: Set<Int32>] = [:]

    init(_ conninfo: String) { self.conninfo = conninfo }

    /// Takes, keeps or gives back partitions of a topic so that this gateway has its share. For one caller a topic.
    /// - Returns: the partitions that it has now.
    /// - Throws: with the connection given up: what it took and was not told is free for others.
    func claim(_ topic: String, of partitions: Int32) async throws -> Set<Int32> {
        let connection = try await usable()
        do {
            return try await claim(topic, of: partitions, by: connection)
        } catch {
            await giveUp(connection)
            throw error
        }
    }

    private func claim(_ topic: String, of partitions: Int32, by connection: PostgresConnection) async throws -> Set<Int32> {
        if held[topic] == nil {
            _ = try await connection.query("SELECT pg_advisory_lock_shared(\(Self.gateways))", [.text(topic)])
            held[topic] = []
        }
        let count = max(try await connection.query(Self.count, [.text(topic)]).int(0, 0) ?? 1, 1)
        let share = Int((Int64(partitions) + count - 1) / count)
        var mine = held[topic] ?? []
        if mine.count > share {
            let surplus = mine.sorted().suffix(mine.count - share)
            _ = try await connection.query(Self.give, [.text(topic), .text(StoreText.array(surplus.map(String.init)))])
            mine.subtract(surplus)
        } else if mine.count < share {
            let free = (0..<partitions).filter { !mine.contains($0) }
            let taken = try await connection.query(
                Self.take, [.text(topic), .text(StoreText.array(free.map(String.init))), .int(share - mine.count)])
            for row in 0..<taken.count { mine.insert(Int32(taken.int(row, 0) ?? 0)) }
        }
        held[topic] = mine
        return mine
    }

    /// Gives back all that this gateway has of a topic, and counts no longer.
    func release(_ topic: String) async {
        guard let mine = held.removeValue(forKey: topic), let connection else { return }
        do {
            _ = try await connection.query(Self.give, [.text(topic), .text(StoreText.array(mine.sorted().map(String.init)))])
            _ = try await connection.query("SELECT pg_advisory_unlock_shared(\(Self.gateways))", [.text(topic)])
        } catch {
            await giveUp(connection)
        }
    }

    /// Without an answer locks may be held that nobody knows of; they go with their connection.
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
    /// No more locks are tried than are wanted: a LIMIT ends the scan of the function's rows.
    private static let take = "SELECT p FROM unnest($2::int[]) AS p WHERE pg_try_advisory_lock(\(partition)) LIMIT $3"
    /// A lock's 64 bits are shown in two halves.
    private static let count = """
        SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (classid::bigint << 32) | objid::bigint = \(gateways)
        """

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
