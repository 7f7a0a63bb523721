import SluiceCore

/// The comparison of one table with its class, on a connection's queue.
struct TableCheck {
    let session: PostgresSession
    let schema: Schema
    let type: ObjectType
    let mapping: TableMapping
    /// `true` if no schema in use has the class. A required property without a column is then a mismatch with a table of other
    /// programs, not growth.
    var isAdopted = false

    struct Column {
        /// The type as declared, without its modifiers.
        var declared: String
        /// The base type of a domain, or the element type of an array.
        var base: String
        var isArray: Bool
        var isGenerated: Bool
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
            return [failure("\(mapping.displayName) of type \(type.name) is not a table; views and foreign tables do not sync.")]
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
        } else if let key = type.primaryKey, columns[mapping.columns[key]] != nil, try !hasKey(mapping.columns[key]) {
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
        let isArray = form.code == .array || form.code == .set
        let code = isArray ? form.element : form.code
        let accepted = [code.typeName] + code.alsoAccepted
        if isArray == column.isArray, accepted.contains(column.declared) || accepted.contains(column.base), !column.isGenerated {
            return nil
        }
        let found = column.isGenerated ? "a generated column" : column.declared
        return failure("\(place) has the column “\(name)” of the wrong type: expected \(form.columnType), found \(found).")
    }

    func failure(_ message: String, fix: String? = nil) -> PostgresError { PostgresError(.tableUnfit, message, fix: fix) }

    // MARK: Catalog queries

    /// Returns `pg_class.relkind`; nil if the relation does not exist.
    func relationKind() throws -> String? {
        try session.query("SELECT relkind FROM pg_class WHERE oid = to_regclass($1)", [.text(mapping.sqlName)])[0, 0]
    }

    func columns() throws -> [String: Column] {
        let result = try session.query(
            """
            SELECT a.attname, format_type(a.atttypid, NULL),
                format_type(COALESCE(NULLIF(e.typbasetype, 0), e.oid, NULLIF(t.typbasetype, 0), t.oid), NULL),
                e.oid IS NOT NULL, a.attgenerated <> ''
            FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
            WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
            """, [.text(mapping.sqlName)])
        var columns: [String: Column] = [:]
        for row in 0..<result.count {
            columns[result[row, 0] ?? ""] = Column(
                declared: result[row, 1] ?? "", base: result[row, 2] ?? "", isArray: result.bool(row, 3) ?? false,
                isGenerated: result.bool(row, 4) ?? false)
        }
        return columns
    }

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

    /// Returns `true` if the column alone is a key: unique and never null.
    private func hasKey(_ column: String) throws -> Bool {
        try session.query(
            """
            SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                WHERE i.indrelid = to_regclass($1) AND a.attname = $2 AND a.attnotnull AND i.indisunique AND i.indisvalid
                    AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL)
            """, [.text(mapping.sqlName), .text(column)]
        ).bool(0, 0) ?? false
    }
}
