import SluiceCore

/// The partitioning by time of an asymmetric class's table (PostgreSQL, Table Partitioning).
///
/// The time belongs to the primary key, as PostgreSQL requires. An object that arrives again with its key and time is recognized
/// and skipped. The same key with another time is another row.
package struct TimePartitions: Hashable, Sendable {
    /// The length of a partition. Each begins at midnight UTC; a week on Monday, a month on its first day.
    package enum Period: String, CaseIterable, Sendable { case day, week, month }

    /// The property with the time: a required date.
    package var property: String
    package var period: Period
    /// The number of days after which a partition is dropped; nil keeps all.
    package var keepDays: Int?

    package init(property: String, period: Period, keepDays: Int? = nil) {
        self.property = property
        self.period = period
        self.keepDays = keepDays
    }
}

/// The changes that were made to one table.
package struct PartitionWork: Hashable, Sendable {
    package var table: String
    package var made: [String] = []
    package var dropped: [String] = []
    /// The number of expired rows that were deleted from the default partition.
    package var deleted = 0
}

/// The maintenance of the partitions of the tables in `sluice.time_partition`: creates due ones and drops expired ones.
package struct TimePartitionStore: Sendable {
    /// The maximum number of partitions that one pass creates for a table, such as for late rows.
    private static let mostMade = 100

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Maintains every table once.
    ///
    /// Partitions exist from the current period to two periods ahead. Rows of other times are in the default partition. Unless they
    /// are in the future, they move to partitions of their own. Each table is locked only for that time. If its lock is not
    /// available within 5 s, the table is left to the next pass.
    /// - Parameter now: The current time, in seconds since 1970.
    /// - Returns: The changes, or the error, of each table.
    package func keep(now: Int64) async throws -> [(table: String, outcome: Result<PartitionWork, any Error>)] {
        let tables = try await pool.perform { session in
            let result = try session.query("SELECT table_name, column_name, period, keep_days FROM sluice.time_partition ORDER BY 1")
            return (0..<result.count).map { row in
                Cut(
                    table: result[row, 0] ?? "", column: result[row, 1] ?? "", period: result[row, 2] ?? "", keepDays: result.int(row, 3),
                    now: now)
            }
        }
        var outcomes: [(table: String, outcome: Result<PartitionWork, any Error>)] = []
        for cut in tables {
            do {
                outcomes.append((cut.table, .success(try await pool.transact { session in try cut.keep(session, most: Self.mostMade) })))
            } catch {
                outcomes.append((cut.table, .failure(error)))
            }
        }
        return outcomes
    }
}

/// A partitioned table at one moment, on a connection's queue.
private struct Cut: Sendable {
    let table: String
    let column: String
    let period: String
    let keepDays: Int64?
    let now: Int64

    func keep(_ session: PostgresSession, most: Int) throws -> PartitionWork {
        var work = PartitionWork(table: table)
        try session.script("SET LOCAL lock_timeout = '5s'; SET LOCAL timezone = 'UTC'")
        // One gateway at a time maintains a table.
        try session.query("SELECT pg_advisory_xact_lock(hashtextextended('sluice.partitions ' || $1::text, 0))", [.text(table)])
        guard let rest = try session.query(Self.defaultPartition, [.text(table)])[0, 0] else { return work }
        let missing = try missing(rest, session, most: most)
        let old = try old(session)
        guard !missing.isEmpty || !old.isEmpty || keepDays != nil else { return work }
        for partition in missing {
            try make(partition, rest, session)
            work.made.append(partition.name)
        }
        for name in old {
            try session.script("DROP TABLE \(name)")
            work.dropped.append(name)
        }
        // Expired rows that had no partition of their own are in the default partition.
        if let keepDays {
            let sql = "DELETE FROM \(rest) WHERE \(name) < to_timestamp($1) - make_interval(days => $2::int)"
            work.deleted = try session.execute(sql, [.int(now), .int(keepDays)])
        }
        return work
    }

    private var name: String { SQLQuote.identifier(column) }

    private struct Partition {
        var name: String
        var from: String
        var to: String
    }

    private static let defaultPartition = """
        SELECT c.oid::regclass FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE i.inhparent = to_regclass($1) AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
        """

    /// SQL for the bounds of the existing partitions.
    private static let bounds = """
        SELECT c.oid::regclass AS name, m[1]::timestamptz AS low, m[2]::timestamptz AS high
        FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid,
            regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \\('([^']+)'\\) TO \\('([^']+)'\\)$$) AS m
        WHERE i.inhparent = to_regclass($1) AND m IS NOT NULL
        """

    /// Returns the missing partitions: the current period and two ahead, and past periods of unexpired rows in the default
    /// partition.
    private func missing(_ rest: String, _ session: PostgresSession, most: Int) throws -> [Partition] {
        let result = try session.query(
            """
            WITH due AS (
                SELECT date_trunc($2, to_timestamp($3), 'UTC') + n * ('1 ' || $2)::interval AS low FROM generate_series(0, 2) AS n
                UNION
                SELECT DISTINCT date_trunc($2, \(name), 'UTC') FROM \(rest)
                WHERE \(name) < to_timestamp($3) AND ($4::int IS NULL OR \(name) >= to_timestamp($3) - make_interval(days => $4::int))
            )
            SELECT to_char(low, 'YYYYMMDD'), low, low + ('1 ' || $2)::interval FROM due
            WHERE NOT EXISTS (SELECT FROM (\(Self.bounds)) AS there WHERE there.low < due.low + ('1 ' || $2)::interval AND there.high > due.low)
            ORDER BY low DESC LIMIT $5
            """, [.text(table), .text(period), .int(now), keepDays.map { .int($0) } ?? .null, .int(most)])
        return (0..<result.count).map { row in
            Partition(name: result[row, 0] ?? "", from: result[row, 1] ?? "", to: result[row, 2] ?? "")
        }
    }

    /// Returns the partitions that end before the retention limit.
    private func old(_ session: PostgresSession) throws -> [String] {
        guard let keepDays else { return [] }
        return try session.query(
            "SELECT name FROM (\(Self.bounds)) AS there WHERE high <= to_timestamp($2) - make_interval(days => $3::int) ORDER BY low",
            [.text(table), .int(now), .int(keepDays)]
        ).column(0)
    }

    /// Creates a partition beside the table, moves its rows there from the default partition, and attaches it. The lock excludes
    /// writers meanwhile.
    private func make(_ partition: Partition, _ rest: String, _ session: PostgresSession) throws {
        let own =
            try session.query(
                """
                SELECT format('%I.%I', n.nspname, left(c.relname, 50) || '_' || $2::text)
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)
                """, [.text(table), .text(partition.name)])[0, 0] ?? ""
        let (from, to) = (SQLQuote.postgresLiteral(partition.from), SQLQuote.postgresLiteral(partition.to))
        try session.script(
            """
            LOCK TABLE \(rest) IN ACCESS EXCLUSIVE MODE;
            CREATE TABLE \(own) (LIKE \(table) INCLUDING ALL);
            WITH moved AS (DELETE FROM \(rest) WHERE \(name) >= \(from) AND \(name) < \(to) RETURNING *) INSERT INTO \(own) SELECT * FROM moved;
            ALTER TABLE \(table) ATTACH PARTITION \(own) FOR VALUES FROM (\(from)) TO (\(to))
            """)
    }
}
