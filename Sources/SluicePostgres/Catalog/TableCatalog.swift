package import SluiceCore

/// The app's tables beside its schema: checks them, and creates missing tables and columns.
package struct TableCatalog: Sendable {
    package let schema: Schema
    /// The mappings of the classes that have a table: top-level and asymmetric ones.
    package let tables: [TableMapping]
    /// The classes that no schema in use has. If a table of theirs has rows, it receives no required column
    /// (`TableCheck.isAdopted`).
    package var adopted: Set<String> = []

    package init(schema: Schema, tables: [TableMapping]) {
        self.schema = schema
        self.tables = tables
    }

    /// Creates a catalog in which each class has a table of its own name in one schema.
    package init(schema: Schema, in sqlSchema: String = "public") {
        self.init(schema: schema, tables: schema.types.filter { $0.kind != .embedded }.map { TableMapping($0, schema: sqlSchema) })
    }

    package func type(of mapping: TableMapping) -> ObjectType? { schema[mapping.type] }

    /// Returns the mapping of a class; nil for an embedded or unknown one.
    package subscript(type: String) -> TableMapping? { tables.first { $0.type == type } }

    /// Compares the tables with the classes: missing tables, columns and keys, and columns of a wrong type.
    ///
    /// Columns without a property are ignored.
    /// - Returns: A `tableUnfit` for each mismatch, with the table, the column, the expected and the found type.
    package func check(_ connection: PostgresConnection) async throws -> [PostgresError] {
        try await connection.withSession { session in
            try checks(session).flatMap { try $0.failures() }
        }
    }

    /// Returns the problems that fitting tables will cause.
    package func findings(_ connection: PostgresConnection) async throws -> [TableFinding] {
        try await connection.withSession { session in try findings(session) }
    }

    private func findings(_ session: PostgresSession) throws -> [TableFinding] {
        try checks(session).flatMap { try $0.insertFindings() } + foreignKeyFindings(session)
    }

    /// Returns the checks of all tables as they are now. After a change of a table, its check knows the former one.
    func checks(_ session: PostgresSession) -> [TableCheck] {
        let known = tables.compactMap { mapping in schema[mapping.type].map { (type: $0, mapping: mapping) } }
        let facts = TableFacts(known, session)
        return known.map {
            TableCheck(
                session: session, schema: schema, type: $0.type, mapping: $0.mapping, facts: facts,
                isAdopted: adopted.contains($0.type.name))
        }
    }

    /// Checks the tables, and throws all mismatches as one error.
    package func requireFit(_ connection: PostgresConnection) async throws {
        if let failure = Self.summary(try await check(connection)) { throw failure }
    }

    /// Returns one failure for all. If there are several, the text includes the fix of each.
    private static func summary(_ failures: [PostgresError]) -> PostgresError? {
        guard failures.count > 1 else { return failures.first }
        return PostgresError(.tableUnfit, failures.map { "\n  - \($0.messageWithFix)" }.joined() + "\n")
    }

    private static let objectIdDomain = #"sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$')"#

    /// SQL that creates the schema `sluice` and its domain, if they are missing.
    private static let makeDomain = """
        \(CompanionSchema.makeSchema);
        DO $$ BEGIN
            IF to_regtype('sluice.objectid') IS NULL THEN
                CREATE DOMAIN \(objectIdDomain);
            END IF;
        END $$
        """

    /// The changes that `apply` would make to the tables.
    package struct Plan: Sendable {
        /// The statements about tables and columns, in order.
        package var structure: [String] = []
        /// The statements that set the replica identity. They come after `structure`.
        package var identities: [String] = []
        /// The mismatches that would remain in existing tables; `apply` then runs nothing.
        package var misfits: [PostgresError] = []
        package var findings: [TableFinding] = []

        package var statements: [String] { structure + identities }
    }

    /// Returns the changes that `apply` would make now. Changes nothing.
    package func plan(_ connection: PostgresConnection) async throws -> Plan {
        try await connection.withSession { session in
            var plan = Plan()
            for check in checks(session) {
                plan.structure += try check.missing()
                plan.misfits += try check.misfits()
                plan.identities += try check.identityStatements()
            }
            plan.findings = try findings(session)
            // The domain must exist before the statements that use it.
            if plan.structure.contains(where: { $0.contains("sluice.objectid") }),
                try session.query("SELECT to_regtype('sluice.objectid') IS NULL").bool(0, 0) == true
            {
                plan.structure.insert(contentsOf: ["CREATE SCHEMA IF NOT EXISTS sluice", "CREATE DOMAIN \(Self.objectIdDomain)"], at: 0)
            }
            return plan
        }
    }

    /// Creates missing tables and adds missing columns, in one transaction. Existing columns never change.
    ///
    /// A required property that is added later receives its type's zero in existing rows.
    /// - Returns: The statements that were run, for the log.
    package func create(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { session in
            try session.inTransaction {
                try Self.lock(session)
                try session.script(Self.makeDomain)
                return try checks(session).flatMap { try Self.run($0.missing(), session) }
            }
        }
    }

    /// Creates missing tables and columns, and sets REPLICA IDENTITY FULL, so that changes carry their old rows.
    ///
    /// All of it is one transaction. It takes short exclusive locks; a wait for one fails after 5 s.
    /// - Parameter record: Runs last in the transaction.
    /// - Returns: The result of `record`.
    /// - Throws: `tableUnfit` for mismatches that no statement fixes.
    package func apply<R: Sendable>(_ connection: PostgresConnection, record: @Sendable (PostgresSession) throws -> R) async throws -> R {
        try await connection.withSession { session in
            try session.inTransaction {
                try Self.lock(session)
                try session.script("SET LOCAL lock_timeout = '5s'")
                try session.script(Self.makeDomain)
                // A row that arrived between the check and the statement would get a default that the check has ruled out.
                for check in checks(session) {
                    guard try check.relationKind() != nil, try !check.missing().isEmpty else { continue }
                    try session.script("LOCK TABLE \(check.mapping.sqlName) IN ACCESS EXCLUSIVE MODE", within: .seconds(60))
                }
                // Checked under the locks, before any statement changes a table.
                let checks = checks(session)
                if let failure = Self.summary(try checks.flatMap { try $0.misfits() }) { throw failure }
                for check in checks {
                    _ = try Self.run(check.missing(), session)
                    guard check.type.kind == .topLevel else { continue }
                    let changed = try Self.setFullIdentity(check.mapping, session)
                    // While the table was published, its changes may have lacked their old rows.
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

    /// Serializes gateways that start at once, until the end of the transaction.
    static func lock(_ session: PostgresSession) throws {
        try session.query("SELECT pg_advisory_xact_lock(8317708086)", within: .seconds(60))
    }

    /// Records the tables that are partitioned by time, so that their partitions are maintained.
    package func notePartitions(_ connection: PostgresConnection) async throws {
        try await connection.withSession { session in
            let whole = tables.filter { $0.partitions == nil }.map(\.sqlName)
            try session.execute("DELETE FROM sluice.time_partition WHERE table_name = ANY ($1::text[])", [.text(StoreText.array(whole))])
            for mapping in tables {
                guard let cut = mapping.partitions, let type = schema[mapping.type], let time = type.index(of: cut.property) else {
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

    /// Sets REPLICA IDENTITY FULL for an unpublished table and its partitions. A wait for a lock fails after 5 s.
    package static func setFullIdentity(_ connection: PostgresConnection, of mapping: TableMapping) async throws {
        try await connection.withSession { session in
            try session.inTransaction {
                try session.script("SET LOCAL lock_timeout = '5s'")
                _ = try setFullIdentity(mapping, session)
            }
        }
    }

    /// Sets REPLICA IDENTITY FULL for a table and its partitions.
    ///
    /// - Returns: The table, or those of its partitions, that were changed.
    static func setFullIdentity(_ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        let names = try withoutFullIdentity(mapping, session)
        for name in names { try session.script("ALTER TABLE \(name) REPLICA IDENTITY FULL") }
        return names
    }

    /// Returns the table, or those of its partitions, whose changes lack their old rows.
    static func withoutFullIdentity(_ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        try session.query(
            """
            SELECT c.oid::regclass FROM pg_class c WHERE \(CatalogSQL.lacksIdentity("to_regclass($1)"))
            """, [.text(mapping.sqlName)]
        ).column(0)
    }
}
