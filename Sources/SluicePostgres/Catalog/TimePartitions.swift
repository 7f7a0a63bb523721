import SluiceCore

/// How the table of an asymmetric class is cut by time (PostgreSQL, Table Partitioning).
///
/// The time belongs to the table's primary key, as it must in PostgreSQL: an object that comes again with its key and its time is
/// known and passed over, one with the same key and another time is another row.
package struct TimePartitions: Hashable, Sendable {
    /// The length of a partition; each begins at midnight UTC, on a Monday or the first of a month.
    package enum Period: String, CaseIterable, Sendable { case day, week, month }

    /// The property that says when: a required date.
    package var property: String
    package var period: Period
    /// Days after which a partition is dropped; nil keeps all.
    package var keepDays: Int?

    package init(property: String, period: Period, keepDays: Int? = nil) {
        self.property = property
        self.period = period
        self.keepDays = keepDays
    }
}

/// What was done to one table.
package struct PartitionWork: Hashable, Sendable {
    package var table: String
    package var made: [String] = []
    package var dropped: [String] = []
    /// Rows older than what is kept that were in no partition of their own.
    package var deleted = 0
}

/// The partitions of the tables in `sluice.time_partition`: makes those that are due and drops those that are too old.
package struct TimePartitionStore: Sendable {
    /// Partitions that one look makes of one table, for rows that came late.
    private static let mostMade = 100

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Looks at every table once.
    ///
    /// There are partitions from now on to two periods ahead; rows of other times lie in the default partition, and move to
    /// partitions of their own when they are not in the future. Each table is locked for the moment that it takes, and left for the next
    /// look when the lock is not to be had within five seconds.
    /// - Parameter now: seconds since 1970.
    /// - Returns: what was done, and what went wrong, by table.
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

/// One table and how it is cut, at one moment, on a connection's queue.
private struct Cut: Sendable {
    let table: String
    let column: String
    let period: String
    let keepDays: Int64?
    let now: Int64

    func keep(_ session: PostgresSession, most: Int) throws -> PartitionWork {
        var work = PartitionWork(table: table)
        try session.script("SET LOCAL lock_timeout = '5s'; SET LOCAL timezone = 'UTC'")
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

    /// The bounds of the partitions that are there.
    private static let bounds = """
        SELECT c.oid::regclass AS name, m[1]::timestamptz AS low, m[2]::timestamptz AS high
        FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid,
            regexp_match(pg_get_expr(c.relpartbound, c.oid), $$FROM \\('([^']+)'\\) TO \\('([^']+)'\\)$$) AS m
        WHERE i.inhparent = to_regclass($1) AND m IS NOT NULL
        """

    /// Periods from now to two ahead, and those of rows in the default partition that are over, which no partition has.
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

    /// Partitions that end before what is kept.
    private func old(_ session: PostgresSession) throws -> [String] {
        guard let keepDays else { return [] }
        return try session.query(
            "SELECT name FROM (\(Self.bounds)) AS there WHERE high <= to_timestamp($2) - make_interval(days => $3::int) ORDER BY low",
            [.text(table), .int(now), .int(keepDays)]
        ).column(0)
    }

    /// Made beside the table and attached with the rows that lay in the default partition; nobody writes there meanwhile.
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
