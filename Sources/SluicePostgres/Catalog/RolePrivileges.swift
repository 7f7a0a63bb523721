import SluiceCore

/// The privileges that a gateway's role needs.
///
/// `missing` is the one function that lists them, for `sluice check`.
package enum RolePrivileges {
    /// A missing privilege, with the statement for its owner or a superuser.
    package struct Missing: Hashable, Sendable {
        /// The object: a table, a schema, the database or the role.
        package var object: String
        /// One sentence.
        package var message: String
        /// Without a semicolon.
        package var statement: String
    }

    /// Returns the missing privileges of the connection's role. Takes no lock and changes nothing.
    ///
    /// - Parameters:
    ///   - facts: The facts of the same connection.
    ///   - catalog: The tables. Missing tables are omitted.
    ///   - unready: The names (`TableMapping.sqlName`) of the tables that the gateway must alter or publish, which only their owner may.
    package static func missing(
        _ connection: PostgresConnection, _ facts: ServerFacts, catalog: TableCatalog, unready: Set<String>
    ) async throws -> [Missing] {
        try await connection.withSession { session in
            try serverWide(session, facts)
                + catalog.tables.flatMap { mapping in
                    try missing(of: mapping, catalog.type(of: mapping)?.kind, mustOwn: unready.contains(mapping.sqlName), session, facts)
                }
        }
    }

    private static func serverWide(_ session: PostgresSession, _ facts: ServerFacts) throws -> [Missing] {
        let role = SQLQuote.identifier(facts.role.name)
        var all: [Missing] = []
        if !facts.role.mayReplicate {
            all.append(
                Missing(
                    object: facts.role.name, message: "The role \(facts.role.name) may not read a replication slot.",
                    statement: "ALTER ROLE \(role) REPLICATION"))
        }
        let found = try session.query(
            """
            SELECT n.oid IS NOT NULL, COALESCE(pg_has_role(n.nspowner, 'usage'), has_database_privilege(current_database(), 'CREATE'))
            FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = 'sluice'
            """)
        guard found.bool(0, 1) != true else { return all }
        if found.bool(0, 0) == true {
            all.append(
                Missing(
                    object: "schema sluice", message: "The role \(facts.role.name) does not own the schema sluice.",
                    statement: "ALTER SCHEMA sluice OWNER TO \(role)"))
        } else {
            all.append(
                Missing(
                    object: facts.database, message: "The role \(facts.role.name) may not create the schema sluice.",
                    statement: "GRANT CREATE ON DATABASE \(SQLQuote.identifier(facts.database)) TO \(role)"))
        }
        return all
    }

    private static func missing(
        of mapping: TableMapping, _ kind: ObjectKind?, mustOwn: Bool, _ session: PostgresSession, _ facts: ServerFacts
    ) throws -> [Missing] {
        // By name: `to_regclass` fails in a schema that the role may not use.
        let wanted = kind == .asymmetric ? ["SELECT", "INSERT"] : ["SELECT", "INSERT", "UPDATE", "DELETE"]
        let found = try session.query(
            """
            SELECT pg_has_role(c.relowner, 'usage'), has_schema_privilege(c.relnamespace, 'USAGE'),
                ARRAY(SELECT p FROM unnest($2::text[]) AS p WHERE NOT has_table_privilege(c.oid, p))::text
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $3
            """, [.text(mapping.schema), .text(StoreText.array(wanted)), .text(mapping.table)])
        guard !found.isEmpty else { return [] }
        let role = SQLQuote.identifier(facts.role.name)
        var all: [Missing] = []
        if found.bool(0, 1) != true {
            all.append(
                Missing(
                    object: "schema \(mapping.schema)", message: "The role \(facts.role.name) may not use the schema \(mapping.schema).",
                    statement: "GRANT USAGE ON SCHEMA \(SQLQuote.identifier(mapping.schema)) TO \(role)"))
        }
        let lacking = wanted.filter { (found[0, 2] ?? "").contains($0) }
        if !lacking.isEmpty {
            let list = lacking.joined(separator: ", ")
            all.append(
                Missing(
                    object: mapping.displayName, message: "The role \(facts.role.name) lacks \(list) on \(mapping.displayName).",
                    statement: "GRANT \(list) ON \(mapping.sqlName) TO \(role)"))
        }
        if mustOwn, found.bool(0, 0) != true {
            all.append(
                Missing(
                    object: mapping.displayName,
                    message:
                        "The role \(facts.role.name) does not own \(mapping.displayName), so it can neither publish it nor set its replica identity.",
                    statement: "ALTER TABLE \(mapping.sqlName) OWNER TO \(role)"))
        }
        return all
    }
}
