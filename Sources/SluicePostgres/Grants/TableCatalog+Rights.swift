import SluiceCore

extension TableCatalog {
    /// Checks that the role of the connection may run what `apply` would run.
    ///
    /// - Throws: `grantMissing` with the statements that the owner of the tables has to run.
    package func requireRights(_ connection: PostgresConnection) async throws {
        let denied = try await connection.withSession { session in
            let place = try session.query(
                """
                SELECT to_regnamespace('sluice') IS NOT NULL OR has_database_privilege(current_database(), 'CREATE'),
                    quote_ident(current_user)
                """)
            let companion = place.bool(0, 0) == true ? [] : ["CREATE SCHEMA sluice AUTHORIZATION \(place[0, 1] ?? "")"]
            return try companion + checks(session).flatMap { try $0.denied() }
        }
        guard !denied.isEmpty else { return }
        let lines = denied.map { "\n  \($0);" }.joined()
        throw SluiceError(
            .grantMissing, "The role may not run \(denied.count) of the statements:\(lines)\n",
            fix: "Run these as the owner of the tables. Then run `sluice schema apply` again, which records the schema.")
    }
}

extension TableCheck {
    /// Returns the statements for the table that the role of the connection may not run.
    fileprivate func denied() throws -> [String] {
        let statements = try missing() + identityStatements()
        return try statements.isEmpty || mayAlter() ? [] : statements
    }

    /// `true` if the role owns the table, or may create it.
    private func mayAlter() throws -> Bool {
        try session.query(
            """
            SELECT COALESCE((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)),
                CASE WHEN to_regnamespace($2) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
                    ELSE has_schema_privilege(to_regnamespace($2), 'CREATE') END)
            """, [.text(mapping.sqlName), .text(SQLQuote.identifier(mapping.schema))]
        ).bool(0, 0) ?? false
    }
}
