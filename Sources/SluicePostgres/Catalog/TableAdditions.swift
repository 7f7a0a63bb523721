package import SluiceCore

/// The indexes and comments that a migration adds to tables: they change no result, and make queries fast and tables readable.
package struct TableAdditions: Sendable {
    private let catalog: TableCatalog
    private let fields: QueryableFields

    package init(_ catalog: TableCatalog, fields: QueryableFields) {
        self.catalog = catalog
        self.fields = fields
    }

    /// Returns the statements for what is missing now, in order. Tables and columns that do not exist count as empty ones.
    package func statements(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { try statements($0) }
    }

    /// Runs the statements in one transaction.
    ///
    /// - Returns: The statements that were run.
    package func apply(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { session in
            try session.inTransaction {
                try TableCatalog.lock(session)
                let statements = try statements(session)
                // An index of a large table takes its time.
                for statement in statements { try session.script(statement, within: .seconds(3_600)) }
                return statements
            }
        }
    }

    private func statements(_ session: PostgresSession) throws -> [String] {
        try catalog.tables.flatMap { mapping -> [String] in
            guard let type = catalog.type(of: mapping) else { return [] }
            return try indexes(type, mapping, session) + comments(type, mapping, session)
        }
    }

    // MARK: Indexes

    /// Returns an index for each link and for the indexed queryable field, unless one begins with the column.
    private func indexes(_ type: ObjectType, _ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        let indexed = fields.indexedProperty(of: type)
        let wanted = type.properties.indices.filter { index in
            guard index != type.primaryKey, type.properties[index].collection == .none else { return false }
            if case .link = type.properties[index].type { return true }
            return index == indexed
        }
        guard !wanted.isEmpty else { return [] }
        let found = Set(
            try session.query(
                """
                SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indpred IS NULL
                """, [.text(mapping.sqlName)]
            ).column(0))
        return wanted.filter { !found.contains(mapping.columns[$0]) }
            .map { "CREATE INDEX ON \(mapping.sqlName) (\(mapping.sqlColumn($0)))" }
    }

    // MARK: Comments

    /// Returns a comment for the table, and one for each column whose type does not tell the property's. Existing comments stay.
    private func comments(_ type: ObjectType, _ mapping: TableMapping, _ session: PostgresSession) throws -> [String] {
        let found = Set(
            try session.query(
                """
                SELECT COALESCE(a.attname, '') FROM pg_description d LEFT JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid
                    AND d.objsubid > 0
                WHERE d.classoid = 'pg_class'::regclass AND d.objoid = to_regclass($1)
                """, [.text(mapping.sqlName)]
            ).column(0))
        var statements: [String] = []
        if !found.contains("") {
            let kind = type.kind == .asymmetric ? "Asymmetric objects" : "Objects"
            statements.append("COMMENT ON TABLE \(mapping.sqlName) IS \(SQLQuote.postgresLiteral("\(kind) of class \(type.name)."))")
        }
        for index in type.properties.indices where !found.contains(mapping.columns[index]) {
            guard let text = Self.comment(type.properties[index]) else { continue }
            statements.append(
                "COMMENT ON COLUMN \(mapping.sqlName).\(mapping.sqlColumn(index)) IS \(SQLQuote.postgresLiteral("\(text)."))")
        }
        return statements
    }

    /// Returns the comment of a column; nil if its type says all.
    private static func comment(_ property: Property) -> String? {
        switch (property.type, property.collection) {
        case (.link, _), (.embedded, _), (.mixed, _), (_, .set), (_, .dictionary): capitalized(property.typeText)
        default: nil
        }
    }

    private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }
}
