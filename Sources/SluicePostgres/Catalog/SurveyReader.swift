import SluiceCore
import SluiceValues

/// Reads the catalog of a database: five queries in one read-only snapshot, for any number of tables.
package struct SurveyReader: Sendable {
    /// The maximum number of relations. An app directory has at most 20,000 files, and a table needs two.
    package static let mostRelations = 9_000
    /// The time limit of each query.
    static let statementLimit = Duration.seconds(30)

    /// The schemas to read; empty for all but those of the system and of the gateway.
    private let schemas: [String]
    /// The relations to read, as `table` or `schema.table`; empty for all.
    private let tables: [String]

    package init(schemas: [String] = [], tables: [String] = []) {
        self.schemas = schemas
        self.tables = tables
    }

    /// - Throws: `configInvalid` if a named schema or table does not exist, or if there are too many relations.
    package func read(_ connection: PostgresConnection) async throws -> DatabaseSurvey {
        try await connection.withSession { session in
            try session.inTransaction(.readOnly) {
                try session.query("SET LOCAL statement_timeout = '\(Self.statementLimit.components.seconds)s'")
                return try survey(session)
            }
        }
    }

    private func survey(_ session: PostgresSession) throws -> DatabaseSurvey {
        var found = try relations(session)
        try requireNamed(found, session)
        let ids = PostgresParameter.text(StoreText.array(found.order))
        try readColumns(ids, session, &found)
        try readIndexes(ids, session, &found)
        try readPartitions(ids, session, &found)
        try readReferences(ids, session, &found)
        return DatabaseSurvey(relations: found.order.compactMap { found.byID[$0] })
    }

    /// The relations by object id.
    private struct Found {
        var order: [String] = []
        var byID: [String: DatabaseSurvey.Relation] = [:]

        /// Changes the relation whose id is in the first column of a row.
        mutating func change(_ result: PostgresResult, _ row: Int, _ body: (inout DatabaseSurvey.Relation) throws -> Void) throws {
            guard let id = result[row, 0], var relation = byID[id] else { return }
            // Moved out and in again, so that its arrays are not copied for each row.
            byID[id] = nil
            defer { byID[id] = relation }
            try body(&relation)
        }
    }

    private func relations(_ session: PostgresSession) throws -> Found {
        let result = try session.query(
            Self.relations,
            [
                schemas.isEmpty ? .null : .text(StoreText.array(schemas)), tables.isEmpty ? .null : .text(StoreText.array(tables)),
                .int(Self.mostRelations + 1),
            ], within: Self.statementLimit)
        guard result.count <= Self.mostRelations else {
            throw SluiceError(
                .configInvalid, "The database has more than \(Self.mostRelations) tables and views.",
                fix: "Name the schemas or the tables to synchronise, with --schema or --table.")
        }
        var found = Found()
        for row in 0..<result.count {
            guard let id = result[row, 0], let kind = result[row, 3].flatMap(DatabaseSurvey.Kind.init) else { continue }
            var relation = DatabaseSurvey.Relation(schema: result[row, 1] ?? "", name: result[row, 2] ?? "", kind: kind)
            relation.owner = result[row, 4]
            relation.isUnlogged = result.bool(row, 5) ?? false
            relation.hasChildren = result.bool(row, 6) ?? false
            relation.hasRowSecurity = result.bool(row, 7) ?? false
            found.order.append(id)
            found.byID[id] = relation
        }
        return found
    }

    /// Partitions belong to their parents, and are not relations of their own here.
    private static let relations = """
        SELECT c.oid, n.nspname, c.relname, c.relkind, (SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' LIMIT 1),
            c.relpersistence = 'u', c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid), c.relrowsecurity
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
            AND n.nspname NOT IN ('information_schema', 'sluice') AND n.nspname !~ '^pg_'
            AND ($1::text[] IS NULL OR n.nspname = ANY ($1::text[]))
            AND ($2::text[] IS NULL OR c.relname = ANY ($2::text[]) OR n.nspname || '.' || c.relname = ANY ($2::text[]))
        ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C" LIMIT $3
        """

    // MARK: Named schemas and tables

    private func requireNamed(_ found: Found, _ session: PostgresSession) throws {
        let relations = found.byID.values
        for name in tables where !relations.contains(where: { $0.name == name || $0.displayName == name }) {
            throw SluiceError(
                .configInvalid, "The table '\(name)' does not exist\(schemas.isEmpty ? "" : " in the named schemas").",
                fix: "Write it as in \\dt of psql, with its schema and in its letters: public.orders.")
        }
        let known = Set(relations.map(\.schema))
        guard tables.isEmpty, let name = schemas.first(where: { !known.contains($0) }) else { return }
        let all = try session.query(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'sluice') ORDER BY 1 LIMIT 1000"
        ).column(0)
        guard all.contains(name) else {
            throw SluiceError(
                .configInvalid, "The schema '\(name)' does not exist.",
                fix: Suggestion.nearest(to: name, in: all).map { "Did you mean '\($0)'?" }
                    ?? "Name one of \(all.prefix(10).joined(separator: ", ")).")
        }
        throw SluiceError(.configInvalid, "The schema '\(name)' has no table.", fix: "Name another one, or remove --schema.")
    }

    // MARK: Columns

    private func readColumns(_ ids: PostgresParameter, _ session: PostgresSession, _ found: inout Found) throws {
        let result = try session.query(Self.columns, [ids], within: Self.statementLimit)
        for row in 0..<result.count {
            try found.change(result, row) { relation in
                var column = DatabaseSurvey.Column(
                    result[row, 1] ?? "", result[row, 2] ?? "", base: result[row, 3], isNotNull: result.bool(row, 4) ?? false)
                column.isArray = result.bool(row, 5) ?? false
                column.dimensions = Int(result.int(row, 6) ?? 0)
                column.isEnum = result.bool(row, 7) ?? false
                column.isGenerated = result.bool(row, 8) ?? false
                column.identity = result[row, 9].flatMap(DatabaseSurvey.Identity.init) ?? .none
                column.hasDefault = result.bool(row, 10) ?? false
                column.isArrayDomain = result.bool(row, 11) ?? false
                relation.columns.append(column)
            }
        }
    }

    /// `base` resolves domains, also those over domains.
    private static let columns = """
        WITH RECURSIVE base(id, type, required, defaulted) AS (
            SELECT oid, oid, false, false FROM pg_type WHERE typtype <> 'd'
            UNION ALL
            SELECT t.oid, b.type, b.required OR t.typnotnull, b.defaulted OR t.typdefault IS NOT NULL
            FROM pg_type t JOIN base b ON t.typtype = 'd' AND t.typbasetype = b.id)
        SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), format_type(COALESCE(e.type, t.oid), NULL),
            a.attnotnull OR b.required, e.type IS NOT NULL, a.attndims, COALESCE(et.typtype, t.typtype) = 'e', a.attgenerated <> '',
            a.attidentity, (a.atthasdef AND a.attgenerated = '') OR b.defaulted,
            a.atttypid <> b.type AND t.typcategory = 'A'
        FROM pg_attribute a JOIN base b ON b.id = a.atttypid JOIN pg_type t ON t.oid = b.type
            LEFT JOIN base e ON t.typcategory = 'A' AND e.id = t.typelem LEFT JOIN pg_type et ON et.oid = e.type
        WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attrelid, a.attnum
        """

    // MARK: Indexes

    private func readIndexes(_ ids: PostgresParameter, _ session: PostgresSession, _ found: inout Found) throws {
        let result = try session.query(Self.indexes, [ids], within: Self.statementLimit)
        for row in 0..<result.count {
            // An expression has no name.
            let names = (try result.json(row, 3).array ?? []).map(\.string)
            try found.change(result, row) { relation in
                if result.bool(row, 2) == true {
                    relation.keys.append(.init(names.compactMap { $0 }, isPrimary: result.bool(row, 1) ?? false))
                }
                if let first = names.first ?? nil, !relation.indexed.contains(first) { relation.indexed.append(first) }
            }
        }
    }

    private static let indexes = """
        SELECT i.indrelid, i.indisprimary, i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL,
            json_agg(a.attname ORDER BY k.place)
        FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
            LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE i.indrelid = ANY ($1::oid[]) AND i.indisvalid AND k.place <= i.indnkeyatts
        GROUP BY i.indexrelid, i.indrelid, i.indisprimary, 3 ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid
        """

    private func readPartitions(_ ids: PostgresParameter, _ session: PostgresSession, _ found: inout Found) throws {
        let result = try session.query(Self.partitions, [ids], within: Self.statementLimit)
        for row in 0..<result.count {
            try found.change(result, row) { relation in relation.uniqueInPartitions += result[row, 1].map { [$0] } ?? [] }
        }
    }

    private static let partitions = """
        WITH leaves AS (
            SELECT p.oid AS root, t.relid AS leaf FROM pg_class p CROSS JOIN LATERAL pg_partition_tree(p.oid) t
            WHERE p.oid = ANY ($1::oid[]) AND p.relkind = 'p' AND t.isleaf)
        SELECT l.root, a.attname FROM leaves l
            JOIN pg_index i ON i.indrelid = l.leaf AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
                AND i.indpred IS NULL AND i.indexprs IS NULL
            JOIN pg_attribute a ON a.attrelid = l.leaf AND a.attnum = i.indkey[0]
        GROUP BY l.root, a.attname
        HAVING count(DISTINCT l.leaf) = (SELECT count(*) FROM leaves o WHERE o.root = l.root)
        ORDER BY l.root, min(i.indexrelid)
        """

    // MARK: Foreign keys

    private func readReferences(_ ids: PostgresParameter, _ session: PostgresSession, _ found: inout Found) throws {
        let result = try session.query(Self.references, [ids], within: Self.statementLimit)
        for row in 0..<result.count {
            func names(_ column: Int) throws -> [String] { (try result.json(row, column).array ?? []).compactMap(\.string) }
            let reference = DatabaseSurvey.Reference(try names(3), to: result[row, 1] ?? "", result[row, 2] ?? "", try names(4))
            try found.change(result, row) { $0.references.append(reference) }
        }
    }

    private static let references = """
        SELECT c.conrelid, n.nspname, t.relname,
            (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number),
            (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(c.confkey) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number)
        FROM pg_constraint c JOIN pg_class t ON t.oid = c.confrelid JOIN pg_namespace n ON n.oid = t.relnamespace
        WHERE c.contype = 'f' AND c.conparentid = 0 AND c.conrelid = ANY ($1::oid[])
        ORDER BY c.conrelid, c.conname COLLATE "C"
        """
}
