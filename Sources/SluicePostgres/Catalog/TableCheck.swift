import SluiceCore
import SluiceValues

/// The comparison of one table with its class, on a connection's queue.
struct TableCheck {
    let session: PostgresSession
    let schema: Schema
    let type: ObjectType
    let mapping: TableMapping
    /// The facts of this table and of others, which are read together.
    let facts: TableFacts
    /// `true` if no schema in use has the class. A required property without a column is then a mismatch with a table of other
    /// programs, not growth.
    var isAdopted = false

    struct Column {
        /// The type as declared, without its modifiers.
        var declared: String
        /// The base type of a domain, or the element type of an array.
        var base: String
        var isArray: Bool
        /// nil for a column that is written.
        var generation: ColumnGeneration?
        /// `true` if only a sequence gives the column's values.
        var isIdentity: Bool
        /// The quoted name and the values of an enum, as the column's or its elements' base type; nil for other types.
        var enumeration: ColumnStorage?
    }

    // MARK: Mismatches

    /// Returns the mismatches of existing parts, which no statement of `missing` fixes.
    func misfits() throws -> [PostgresError] { try failures(isWhole: false) }

    /// Returns all mismatches, including missing parts.
    func failures() throws -> [PostgresError] { try failures(isWhole: true) }

    private func failures(isWhole: Bool) throws -> [PostgresError] {
        guard let kind = try relationKind() else {
            if !isWhole { return [] }
            return [
                failure(
                    "The table \(mapping.displayName) of type \(type.name) does not exist.",
                    fix: "Run `sluice schema apply`, which creates it, or create it with the statements of `sluice schema diff`.")
            ]
        }
        guard kind == "r" || kind == "p" else {
            return [
                failure(
                    "\(mapping.displayName) of type \(type.name) is not a table; views and foreign tables do not sync.",
                    fix: "Name a table as the class's collection. For a view, that is a table which triggers keep equal to it.")
            ]
        }
        let columns = try columns()
        var failures = try missingKey(columns, kind) ?? missingRequired(columns)
        // A table that cannot be altered needs one fix for all of its columns.
        if failures.isEmpty, let failure = try unalterable(columns) { return [failure] }
        failures += type.properties.indices.compactMap { index -> PostgresError? in
            let column = columns[mapping.columns[index]]
            if column == nil, !isWhole || index == type.primaryKey { return nil }
            return misfit(index, column)
        }
        if let partitions = mapping.partitions {
            if try !isPartitioned(by: partitions) { failures.append(unpartitioned(partitions)) }
        } else if let key = type.primaryKey, columns[mapping.columns[key]] != nil, try keyPlace() == nil {
            failures.append(
                failure(
                    "The table \(mapping.displayName) of type \(type.name) has no primary key on the column “\(mapping.columns[key])” alone.",
                    fix: try uniquenessFix(key, kind)))
        }
        return failures
    }

    private func unpartitioned(_ partitions: TimePartitions) -> PostgresError {
        failure(
            "The table \(mapping.displayName) of type \(type.name) is not partitioned by range of “\(partitions.property)” with a default partition "
                + "and the primary key (\(mapping.sqlKey(type))).",
            fix: "Rename it, run `sluice schema apply`, which creates the partitioned one, and copy its rows; or remove ingest.json.")
    }

    func misfit(_ property: Int, _ column: Column?) -> PostgresError? {
        let form = ColumnForm(type.properties[property], in: schema)
        let place = "The table \(mapping.displayName) of type \(type.name)"
        let name = mapping.columns[property]
        guard let column else {
            return failure(
                "\(place) lacks the column “\(name)”: expected \(form.columnType).",
                fix:
                    "Run `sluice schema apply`, which adds it, or add it with the statements of `sluice schema diff`."
            )
        }
        if storage(property, column) != nil { return nil }
        let isKey = property == type.primaryKey
        let found = isKey && column.generation != nil ? "a generated column" : column.declared
        return failure(
            "\(place) has the column “\(name)” of the wrong type: expected \(form.columnType), found \(found).", fix: advice(column))
    }

    /// Returns the form of a column; nil if the property cannot have its values.
    func storage(_ property: Int, _ column: Column) -> ColumnStorage? {
        let form = ColumnForm(type.properties[property], in: schema)
        let isArray = form.code == .array || form.code == .set
        let code = isArray ? form.element : form.code
        guard isArray == column.isArray else { return nil }
        let isKey = property == type.primaryKey
        // Clients give the keys of their objects.
        if isKey, column.generation != nil { return nil }
        let accepted = [code.typeName] + code.alsoAccepted
        if accepted.contains(column.declared) || accepted.contains(column.base) { return .plain }
        switch (code, column.base) {
        case (.string, "character"): return .character
        // Another text than a key's can be the same time or duration.
        case (.string, "time without time zone"): return isKey ? nil : .time
        case (.string, "time with time zone"): return isKey ? nil : .zonedTime
        case (.string, "interval"): return isKey ? nil : .interval
        case (.string, _): return column.enumeration
        case (.timestamp, "date"): return .date
        case (.timestamp, "timestamp without time zone"): return .localTime
        case (.json, "json"): return .jsonText
        default: return nil
        }
    }

    /// Returns the advice for a column of a type that no property has.
    private func advice(_ column: Column) -> String? {
        guard !column.isArray, !Self.withProperties.contains(column.base) else { return nil }
        return
            "No property holds a value of the type \(column.declared). Leave the column out of schema.json, or map the property to a text column "
            + "that your programs keep beside it."
    }

    /// The types of columns that a property of another type can have.
    private static let withProperties: Set<String> = [
        "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "bytea", "uuid", "date", "jsonb", "json", "text",
        "character varying", "character", "timestamp with time zone", "timestamp without time zone", "sluice.objectid",
        "time without time zone", "time with time zone", "interval",
    ]

    func failure(_ message: String, fix: String? = nil) -> PostgresError { PostgresError(.tableUnfit, message, fix: fix) }

    // MARK: Catalog queries

    /// Returns `pg_class.relkind`; nil if the relation does not exist.
    func relationKind() throws -> String? {
        let rows = try facts.rows(Self.kindQuery, of: type)
        return rows.indices.first.flatMap { rows.result[$0, 0] }
    }

    private static let kindQuery = "SELECT c.relkind, wanted.number FROM \(TableFacts.wanted) JOIN pg_class c ON c.oid = wanted.id"

    func columns() throws -> [String: Column] {
        let rows = try facts.rows(Self.columnsQuery, of: type)
        let result = rows.result
        var columns: [String: Column] = [:]
        for row in rows.indices {
            let labels = try result.json(row, 5).array?.compactMap(\.string)
            let inputs = try result.json(row, 7).array?.compactMap { input in
                input["column"]?.string.map { ColumnGeneration.Input(column: $0, type: input["type"]?.string ?? "text") }
            }
            columns[result[row, 0] ?? ""] = Column(
                declared: result[row, 1] ?? "", base: result[row, 2] ?? "", isArray: result.bool(row, 3) ?? false,
                generation: result[row, 4].map { ColumnGeneration(expression: $0, inputs: inputs ?? []) },
                isIdentity: result.bool(row, 8) ?? false,
                enumeration: labels.map { .enumeration(name: result[row, 6] ?? "", labels: $0) })
        }
        return columns
    }

    /// SQL for the columns of tables: name, declared type, base type, array or not, generation, labels of an enum, its quoted name, the
    /// columns that a generation names, and identity or not. Domains may be based on domains. The dependencies of a generation changed
    /// their form in PostgreSQL 15.
    private static let columnsQuery = """
        SELECT a.attname, format_type(a.atttypid, NULL), format_type(root.oid, NULL), e.oid IS NOT NULL,
            CASE WHEN a.attgenerated <> '' THEN pg_get_expr(f.adbin, f.adrelid) END,
            CASE WHEN root.typtype = 'e' THEN
                (SELECT COALESCE(json_agg(enumlabel ORDER BY enumsortorder), '[]') FROM pg_enum WHERE enumtypid = root.oid) END,
            format('%I.%I', (SELECT nspname FROM pg_namespace WHERE oid = root.typnamespace), root.typname),
            CASE WHEN a.attgenerated <> '' THEN
                (SELECT json_agg(DISTINCT jsonb_build_object('column', i.attname, 'type', format_type(i.atttypid, i.atttypmod)))
                    FROM pg_depend d JOIN pg_attribute i ON i.attrelid = a.attrelid AND i.attnum = d.refobjsubid
                    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid NOT IN (0, a.attnum)
                        AND (d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                            OR d.classid = 'pg_class'::regclass AND d.objid = a.attrelid AND d.objsubid = a.attnum)) END,
            a.attidentity = 'a', wanted.number
        FROM \(TableFacts.wanted) JOIN pg_attribute a ON a.attrelid = wanted.id JOIN pg_type t ON t.oid = a.atttypid
            LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
            LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
            CROSS JOIN LATERAL (
                WITH RECURSIVE bases AS (
                    SELECT x.* FROM pg_type x WHERE x.oid = COALESCE(e.oid, t.oid)
                    UNION ALL SELECT y.* FROM bases b JOIN pg_type y ON y.oid = b.typbasetype)
                SELECT oid, typtype, typnamespace, typname FROM bases WHERE typtype <> 'd' LIMIT 1) AS root
        WHERE a.attnum > 0 AND NOT a.attisdropped
        """

    /// Returns the relation that this table has its columns from, so that it cannot receive its own: a partitioned table, or a
    /// type.
    func columnsOwner() throws -> String? {
        try session.query(
            """
            SELECT COALESCE(i.inhparent::regclass::text, NULLIF(c.reloftype, 0)::regtype::text) FROM pg_class c
                LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND c.relispartition
            WHERE c.oid = to_regclass($1)
            """, [.text(mapping.sqlName)])[0, 0]
    }

    private func isPartitioned(by partitions: TimePartitions) throws -> Bool {
        guard let time = type.index(of: partitions.property) else { return false }
        return try session.query(
            """
            SELECT EXISTS (SELECT FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
                WHERE p.partrelid = to_regclass($1) AND p.partstrat = 'r' AND p.partnatts = 1 AND p.partdefid <> 0 AND a.attname = $2
                    AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p.partrelid AND i.indisunique AND i.indpred IS NULL
                        AND i.indexprs IS NULL AND i.indnkeyatts = 2 AND (SELECT array_agg(k.attname::text ORDER BY k.attname) FROM pg_attribute k
                            WHERE k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)) @> $3::text[]))
            """,
            [
                .text(mapping.sqlName), .text(mapping.columns[time]),
                .text(StoreText.array([mapping.columns[time]] + (type.primaryKey.map { [mapping.columns[$0]] } ?? []))),
            ]
        ).bool(0, 0) ?? false
    }
}
