import SluiceCore

/// The publication: the tables whose changes, with their old rows, the slot's reader receives.
///
/// A table that is recreated under its name is a new one to PostgreSQL, and in no publication. The WAL does not show the loss of
/// the old rows, and the new rows may be older than those on devices. The same applies to partitions that are attached or detached.
/// It also applies to a partition that is truncated alone: with `publish_via_partition_root` its reader is not notified.
///
/// Therefore `sluice.published_table` records the OIDs of each published table and its partitions, and the transaction since which
/// they are valid. For a partition it also records the file number, which changes by TRUNCATE and by a rewrite such as VACUUM FULL.
package enum Publication {
    /// The change that was made for a table.
    package struct Work: Hashable, Sendable {
        package var table: TableMapping
        /// `true` if the WAL lacks changes of the table, so that its reader starts again (`LogGap`).
        package var isGap: Bool
    }

    /// Publishes tables with their old rows (REPLICA IDENTITY FULL, also of partitions), if they are unpublished or were replaced.
    ///
    /// Other tables of the publication remain. Each table takes one transaction, and adding one blocks its writers. Changes that a
    /// transaction made before the table was published never reach the reader, even if it commits later. A wait for a lock fails
    /// after 5 s.
    /// - Returns: The changes that were made.
    /// - Throws: `tableUnfit` for a table that does not exist, or with a row filter or a column list in the publication.
    package static func ensure(_ connection: PostgresConnection, name: String, tables: [TableMapping]) async throws -> [Work] {
        try await connection.withSession { session in
            try session.inTransaction { try make(name, session) }
            return try missing(name, tables, session).compactMap { table in
                try session.inTransaction { try publish(table, in: name, session) }
            }
        }
    }

    /// Returns the tables that `ensure` would change. Changes nothing.
    package static func missing(_ connection: PostgresConnection, name: String, tables: [TableMapping]) async throws -> [TableMapping] {
        try await connection.withSession { try missing(name, tables, $0) }
    }

    private static func missing(_ name: String, _ tables: [TableMapping], _ session: PostgresSession) throws -> [TableMapping] {
        zip(tables, try standings(name, tables, session)).filter { !$1.isRight }.map(\.0)
    }

    /// Makes the readers of tables start again, because the WAL does not show the new values of their rows.
    package static func announceGap(_ connection: PostgresConnection, tables: [TableMapping]) async throws {
        try await connection.withSession { session in for table in tables { try LogGap.write(table, session) } }
    }

    /// Drops the publication. Does nothing if it does not exist.
    package static func drop(_ connection: PostgresConnection, name: String) async throws {
        try await connection.script("DROP PUBLICATION IF EXISTS \(SQLQuote.identifier(name))")
    }

    // MARK: Steps

    private static func make(_ name: String, _ session: PostgresSession) throws {
        try TableCatalog.lock(session)
        let found = try session.query(Self.options, [.text(name)])
        if found.isEmpty {
            try session.script("CREATE PUBLICATION \(SQLQuote.identifier(name)) WITH (\(CatalogSQL.publicationOptions))")
        } else if found.bool(0, 0) != true {
            try session.script("ALTER PUBLICATION \(SQLQuote.identifier(name)) SET (\(CatalogSQL.publicationOptions))")
        }
    }

    /// Publishes one table.
    ///
    /// - Returns: Nil if another gateway has done so meanwhile.
    /// - Throws: `tableUnfit` if the table does not exist, or the publication leaves out some of its rows or columns.
    private static func publish(_ table: TableMapping, in name: String, _ session: PostgresSession) throws -> Work? {
        try TableCatalog.lock(session)
        // Checked again under the lock, because another gateway may have published the table.
        guard let now = try standings(name, [table], session).first, !now.isRight else { return nil }
        guard let parts = now.parts else {
            throw PostgresError(.tableUnfit, "The table \(table.displayName) of type \(table.type) does not exist.")
        }
        guard !now.isNarrowed else {
            throw PostgresError(
                .tableUnfit, "\(narrowing(of: table, in: name)) of type \(table.type): devices would miss the changes that it leaves out.",
                fix: "Run \(widening(table, in: name)) The gateway then publishes the whole table, and devices compare their rows with it.")
        }
        try session.script("SET LOCAL lock_timeout = '5s'")
        // Set before the table is published, so that no change lacks its old row.
        _ = try TableCatalog.setFullIdentity(table, session)
        if !now.isPublished {
            // The lock waits for transactions that have written the table already.
            try session.script(
                """
                LOCK TABLE \(table.sqlName) IN SHARE ROW EXCLUSIVE MODE;
                ALTER PUBLICATION \(SQLQuote.identifier(name)) ADD TABLE \(table.sqlName)
                """)
        }
        try LogGap.write(table, session)
        // A published table without a record counts as valid for ever: its rows are those that devices have seen.
        try session.execute(
            """
            INSERT INTO sluice.published_table AS known (table_name, parts, since)
            VALUES ($1, $2, CASE WHEN $3 THEN '0' ELSE pg_current_xact_id() END) ON CONFLICT (table_name) DO UPDATE
            SET parts = excluded.parts, since = CASE WHEN known.parts = excluded.parts THEN known.since ELSE excluded.since END
            """, [.text(table.sqlName), .text(parts), .text(now.isPublished && now.known == nil ? "true" : "false")])
        return Work(table: table, isGap: now.known != nil)
    }

    // MARK: Parts of tables

    /// Returns the beginning of a sentence about a table that is not published whole.
    package static func narrowing(of table: TableMapping, in name: String) -> String {
        "The publication \(name) has a row filter or a column list for the table \(table.displayName)"
    }

    /// Returns the statement after which `ensure` publishes the whole table.
    package static func widening(_ table: TableMapping, in name: String) -> String {
        "ALTER PUBLICATION \(SQLQuote.identifier(name)) DROP TABLE \(table.sqlName);"
    }

    // MARK: State

    /// The state of one table, as it is and as it was published.
    package struct Standing: Hashable, Sendable {
        package var isPublished: Bool
        /// `true` if the table and its partitions have REPLICA IDENTITY FULL.
        package var isFull: Bool
        /// `true` if the publication has a row filter or a column list for the table.
        package var isNarrowed = false
        /// The OIDs of the table and its partitions; nil if the table does not exist.
        var parts: String?
        /// The recorded value of `parts`; nil if the table was never published.
        var known: String?

        package var exists: Bool { parts != nil }
        /// `true` if the table was published as another one, or with other partitions: its readers lack changes.
        package var wasReplaced: Bool { known != nil && parts != known }
        var isRight: Bool { isPublished && !isNarrowed && isFull && parts != nil && parts == known }

        package init(isPublished: Bool, isFull: Bool, parts: String?, known: String?) {
            (self.isPublished, self.isFull, self.parts, self.known) = (isPublished, isFull, parts, known)
        }
    }

    /// The publication and its tables, as `ensure` finds them.
    package struct State: Hashable, Sendable {
        package var exists = false
        /// `true` if the publication has all operations, by the root of partitioned tables.
        package var hasOptions = false
        /// The state of each table, in the order of the call.
        package var tables: [Standing] = []

        package init() {}
    }

    /// Returns the state. Takes no lock and changes nothing; the schema `sluice` may be missing.
    package static func state(_ connection: PostgresConnection, name: String, tables: [TableMapping]) async throws -> State {
        try await connection.withSession { session in
            var state = State()
            let found = try session.query(options, [.text(name)])
            (state.exists, state.hasOptions) = (!found.isEmpty, found.bool(0, 0) == true)
            let isRecorded = try session.query("SELECT to_regclass('sluice.published_table') IS NOT NULL").bool(0, 0) == true
            state.tables = try standings(name, tables, session, isRecorded: isRecorded)
            return state
        }
    }

    private static let options =
        "SELECT \(CatalogSQL.hasPublicationOptions) FROM pg_publication WHERE pubname = $1"

    private static func standings(
        _ name: String, _ tables: [TableMapping], _ session: PostgresSession, isRecorded: Bool = true
    ) throws -> [Standing] {
        let sql = look(known: isRecorded ? "(SELECT parts FROM sluice.published_table WHERE table_name = wanted.name)" : "NULL")
        let result = try session.query(sql, [.text(name), .text(StoreText.array(tables.map(\.sqlName)))], cached: true)
        return (0..<result.count).map { row in
            var standing = Standing(
                isPublished: result.bool(row, 0) ?? false, isFull: result.bool(row, 1) ?? false, parts: result[row, 2],
                known: result[row, 3])
            standing.isNarrowed = result.bool(row, 4) ?? false
            return standing
        }
    }

    /// Returns SQL for the state of tables. `OFFSET 0` keeps the lookup of each part by its index. PostgreSQL expects 1,000 parts of each
    /// table, and would read `pg_class` whole for each table.
    ///
    /// - Parameter known: SQL for the recorded parts of a table.
    private static func look(known: String) -> String {
        """
        SELECT \(CatalogSQL.isPublished("wanted.oid", in: "$1")),
            there.are_full, there.parts, \(known), \(CatalogSQL.isNarrowed("wanted.oid", in: "$1"))
        FROM (SELECT name, number, to_regclass(name)::oid AS oid FROM unnest($2::text[]) WITH ORDINALITY AS u (name, number)) AS wanted
        CROSS JOIN LATERAL (
            SELECT bool_and(c.relreplident = 'f') AS are_full,
                string_agg(
                    CASE WHEN c.relkind = 'r' AND c.oid <> wanted.oid THEN concat(c.oid, ':', pg_relation_filenode(c.oid)) ELSE c.oid::text END,
                    ' ' ORDER BY c.oid) AS parts
            FROM (SELECT wanted.oid UNION SELECT relid FROM pg_partition_tree(wanted.oid::regclass)) AS part (oid)
                CROSS JOIN LATERAL (SELECT * FROM pg_class WHERE oid = part.oid AND relkind IN ('r', 'p') OFFSET 0) AS c) AS there
        ORDER BY wanted.number
        """
    }
}
