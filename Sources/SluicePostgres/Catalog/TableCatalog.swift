package import SluiceCore

/// The app's tables beside its schema: checks them, and in development mode makes what is missing.
package struct TableCatalog: Sendable {
    package let schema: Schema
    /// One for each type that has a table: top-level and asymmetric ones.
    package let tables: [TableMapping]

    package init(schema: Schema, tables: [TableMapping]) {
        self.schema = schema
        self.tables = tables
    }

    /// Every type in a table of its own name in one schema.
    package init(schema: Schema, in sqlSchema: String = "public") {
        self.init(schema: schema, tables: schema.types.filter { $0.kind != .embedded }.map { TableMapping($0, schema: sqlSchema) })
    }

    package func type(of mapping: TableMapping) -> ObjectType? { schema[mapping.type] }

    /// The mapping of a type; nil for embedded and unknown ones.
    package subscript(type: String) -> TableMapping? { tables.first { $0.type == type } }

    /// Compares the tables with the types: missing tables, columns and keys, columns of a wrong type. Columns that no
    /// property has are nobody's business.
    ///
    /// - Returns: all that does not fit, each a `tableUnfit` naming table, column, expected and found type.
    package func check(_ connection: PostgresConnection) async throws -> [PostgresFailure] {
        try await connection.withSession { session in
            try tables.flatMap { mapping in
                guard let type = schema[mapping.type] else { return [PostgresFailure]() }
                return try TableCheck(session: session, schema: schema, type: type, mapping: mapping).failures()
            }
        }
    }

    /// Checks, and throws all that does not fit as one error.
    package func requireFit(_ connection: PostgresConnection) async throws {
        let failures = try await check(connection)
        guard let first = failures.first else { return }
        throw PostgresFailure(.tableUnfit, failures.map(\.message).joined(separator: " "), fix: first.asSluiceError.fix)
    }

    private static let objectIdDomain = #"sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$')"#

    /// What `create` and `setReplicaIdentity` would run now, and what of the tables that are there would still not fit. Changes nothing.
    package func plan(_ connection: PostgresConnection) async throws -> (statements: [String], misfits: [PostgresFailure]) {
        try await connection.withSession { session in
            var (statements, misfits): ([String], [PostgresFailure]) = ([], [])
            for mapping in tables {
                guard let type = schema[mapping.type] else { continue }
                let check = TableCheck(session: session, schema: schema, type: type, mapping: mapping)
                statements += try check.missing()
                misfits += try check.misfits()
                guard type.kind == .topLevel else { continue }
                let isThere = try session.query("SELECT to_regclass($1) IS NOT NULL", [.text(mapping.sqlName)]).bool(0, 0) == true
                let tables = isThere ? try Self.withoutFullIdentity(mapping, session) : [mapping.sqlName]
                statements += tables.map { "ALTER TABLE \($0) REPLICA IDENTITY FULL" }
            }
            if statements.contains(where: { $0.contains("sluice.objectid") }),
                try session.query("SELECT to_regtype('sluice.objectid') IS NULL").bool(0, 0) == true
            {
                statements.insert(contentsOf: ["CREATE SCHEMA IF NOT EXISTS sluice", "CREATE DOMAIN \(Self.objectIdDomain)"], at: 0)
            }
            return (statements, misfits)
        }
    }

    /// Makes missing tables and adds missing columns. Existing columns are never changed.
    ///
    /// A required property that comes later gets its type's zero in the rows that are there.
    /// - Returns: the statements that were run, for the log.
    package func create(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { session in
            try session.inTransaction {
                try Self.lock(session)
                try session.script(
                    """
                    CREATE SCHEMA IF NOT EXISTS sluice;
                    DO $$ BEGIN
                        IF to_regtype('sluice.objectid') IS NULL THEN
                            CREATE DOMAIN \(Self.objectIdDomain);
                        END IF;
                    END $$
                    """)
                var done: [String] = []
                for mapping in tables {
                    guard let type = schema[mapping.type] else { continue }
                    let statements = try TableCheck(session: session, schema: schema, type: type, mapping: mapping).missing()
                    for statement in statements { try session.script(statement, within: .seconds(60)) }
                    done += statements
                }
                return done
            }
        }
    }

    /// Gateways that start at once must not trip over each other, until the end of the transaction.
    static func lock(_ session: PostgresSession) throws {
        try session.query("SELECT pg_advisory_xact_lock(8317708086)", within: .seconds(60))
    }

    /// Notes which tables are cut by time and how, so that their partitions are kept.
    package func notePartitions(_ connection: PostgresConnection) async throws {
        try await connection.withSession { session in
            for mapping in tables {
                guard let cut = mapping.partitions, let type = schema[mapping.type], let time = type.index(of: cut.property) else {
                    try session.execute("DELETE FROM sluice.time_partition WHERE table_name = $1", [.text(mapping.sqlName)])
                    continue
                }
                try session.execute(
                    """
                    INSERT INTO sluice.time_partition VALUES ($1, $2, $3, $4) ON CONFLICT (table_name) DO UPDATE
                    SET column_name = excluded.column_name, period = excluded.period, keep_days = excluded.keep_days
                    """,
                    [
                        .text(mapping.sqlName), .text(mapping.columns[time]), .text(cut.period.rawValue),
                        cut.keepDays.map { .int($0) } ?? .null,
                    ])
            }
        }
    }

    /// Sets REPLICA IDENTITY FULL where it is not, on the tables of top-level types and their partitions: without it
    /// changes come without their old rows. Takes a short exclusive lock, and gives up after five seconds of waiting for it.
    /// - Returns: the tables that were changed.
    package func setReplicaIdentity(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { session in
            try tables.filter { schema[$0.type]?.kind == .topLevel }.flatMap { mapping in
                try session.inTransaction {
                    try session.script("SET LOCAL lock_timeout = '5s'")
                    let changed = try Self.setFullIdentity(mapping, session)
                    // Its changes may have come without them while it was published.
                    if !changed.isEmpty { try LogGap.write(mapping, session) }
                    return changed
                }
            }
        }
    }

    /// - Returns: the table, or those of its partitions, that were changed.
    static func setFullIdentity(_ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        let names = try withoutFullIdentity(mapping, session)
        for name in names { try session.script("ALTER TABLE \(name) REPLICA IDENTITY FULL") }
        return names
    }

    /// The table, or those of its partitions, whose changes come without their old rows.
    private static func withoutFullIdentity(_ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        try session.query(
            """
            SELECT c.oid::regclass FROM pg_class c
            WHERE relreplident <> 'f' AND relkind IN ('r', 'p')
                AND (c.oid = to_regclass($1) OR c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass($1))))
            """, [.text(mapping.sqlName)]
        ).column(0)
    }
}
