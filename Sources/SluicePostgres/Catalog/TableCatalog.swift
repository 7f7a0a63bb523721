package import SluiceCore

/// The app's tables beside its schema: checks them, and in development mode makes what is missing.
package struct TableCatalog: Sendable {
    package let schema: Schema
    /// One for each type that has a table: top-level and asymmetric ones.
    package let tables: [TableMapping]
    /// Classes that no schema in use has. A table of theirs that has rows gets no required column: `TableCheck.isAdopted`.
    package var adopted: Set<String> = []

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
            try checks(session).flatMap { try $0.failures() }
        }
    }

    /// Returns the trouble that tables which fit will give.
    package func findings(_ connection: PostgresConnection) async throws -> [TableFinding] {
        try await connection.withSession { session in try findings(session) }
    }

    private func findings(_ session: PostgresSession) throws -> [TableFinding] {
        try checks(session).flatMap { try $0.insertFindings() } + foreignKeyFindings(session)
    }

    private func checks(_ session: PostgresSession) -> [TableCheck] {
        tables.compactMap { mapping in
            schema[mapping.type].map {
                TableCheck(session: session, schema: schema, type: $0, mapping: mapping, isAdopted: adopted.contains($0.name))
            }
        }
    }

    /// Checks, and throws all that does not fit as one error.
    package func requireFit(_ connection: PostgresConnection) async throws {
        if let failure = Self.summary(try await check(connection)) { throw failure }
    }

    /// One failure for all: each with its own fix where there are several.
    private static func summary(_ failures: [PostgresFailure]) -> PostgresFailure? {
        guard failures.count > 1 else { return failures.first }
        return PostgresFailure(.tableUnfit, failures.map { "\n  - \($0.message) \($0.fix)" }.joined() + "\n")
    }

    private static let objectIdDomain = #"sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$')"#

    /// The schema `sluice` and its domain, where they are missing.
    private static let makeDomain = """
        CREATE SCHEMA IF NOT EXISTS sluice;
        DO $$ BEGIN
            IF to_regtype('sluice.objectid') IS NULL THEN
                CREATE DOMAIN \(objectIdDomain);
            END IF;
        END $$
        """

    /// What `apply` would do to the tables.
    package struct Plan: Sendable {
        /// In order.
        package var statements: [String] = []
        /// What of the tables that are there would still not fit; `apply` then runs nothing.
        package var misfits: [PostgresFailure] = []
        package var findings: [TableFinding] = []
    }

    /// Returns what `apply` would run now. Changes nothing.
    package func plan(_ connection: PostgresConnection) async throws -> Plan {
        try await connection.withSession { session in
            var plan = Plan()
            for check in checks(session) {
                plan.statements += try check.missing()
                plan.misfits += try check.misfits()
                guard check.type.kind == .topLevel else { continue }
                let isThere = try check.relationKind() != nil
                let tables = isThere ? try Self.withoutFullIdentity(check.mapping, session) : [check.mapping.sqlName]
                plan.statements += tables.map { "ALTER TABLE \($0) REPLICA IDENTITY FULL" }
            }
            plan.findings = try findings(session)
            if plan.statements.contains(where: { $0.contains("sluice.objectid") }),
                try session.query("SELECT to_regtype('sluice.objectid') IS NULL").bool(0, 0) == true
            {
                plan.statements.insert(contentsOf: ["CREATE SCHEMA IF NOT EXISTS sluice", "CREATE DOMAIN \(Self.objectIdDomain)"], at: 0)
            }
            return plan
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
                try session.script(Self.makeDomain)
                return try checks(session).flatMap { try Self.run($0.missing(), session) }
            }
        }
    }

    /// Makes missing tables and columns and sets REPLICA IDENTITY FULL, which changes need so that they come with their old rows. One
    /// transaction: when anything fails nothing has been changed.
    ///
    /// Takes short exclusive locks, and gives up after five seconds of waiting for one.
    /// - Parameter record: runs last in the transaction.
    /// - Throws: `tableUnfit` for what no statement mends.
    package func apply<R: Sendable>(_ connection: PostgresConnection, record: @Sendable (PostgresSession) throws -> R) async throws -> R {
        try await connection.withSession { session in
            try session.inTransaction {
                try Self.lock(session)
                try session.script("SET LOCAL lock_timeout = '5s'")
                try session.script(Self.makeDomain)
                let checks = checks(session)
                // Rows that come between the look and the statement would get values that nobody was asked about.
                for check in checks {
                    guard try check.relationKind() != nil, try !check.missing().isEmpty else { continue }
                    try session.script("LOCK TABLE \(check.mapping.sqlName) IN ACCESS EXCLUSIVE MODE", within: .seconds(60))
                }
                if let failure = Self.summary(try checks.flatMap { try $0.misfits() }) { throw failure }
                for check in checks {
                    _ = try Self.run(check.missing(), session)
                    guard check.type.kind == .topLevel else { continue }
                    let changed = try Self.setFullIdentity(check.mapping, session)
                    // Its changes may have come without their old rows while it was published.
                    if !changed.isEmpty { try LogGap.write(check.mapping, session) }
                }
                return try record(session)
            }
        }
    }

    private static func run(_ statements: [String], _ session: PostgresSession) throws -> [String] {
        for statement in statements { try session.script(statement, within: .seconds(60)) }
        return statements
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
