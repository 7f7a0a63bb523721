import SluiceCore

extension TableCheck {
    /// Returns the statements that create the table, or its missing columns.
    ///
    /// An existing table receives no key column, because a constant in all rows is no key. In that case `misfits` reports it, and
    /// no column is added.
    func missing() throws -> [String] {
        guard let kind = try relationKind() else {
            var columns = type.properties.indices.map { definition($0, isNew: true) }
            if type.primaryKey != nil { columns.append("PRIMARY KEY (\(mapping.sqlKey(type)))") }
            let table = "CREATE TABLE \(mapping.sqlName) (\(columns.joined(separator: ", ")))"
            let schema = mapping.schema == "public" ? [] : ["CREATE SCHEMA IF NOT EXISTS \(SQLQuote.identifier(mapping.schema))"]
            guard let time = mapping.partitions.flatMap({ type.index(of: $0.property) }) else { return schema + [table] }
            let rest = "\(SQLQuote.identifier(mapping.schema)).\(SQLQuote.identifier(mapping.table + "_default"))"
            return schema + [
                "\(table) PARTITION BY RANGE (\(mapping.sqlColumn(time)))",
                "CREATE TABLE \(rest) PARTITION OF \(mapping.sqlName) DEFAULT",
            ]
        }
        guard kind == "r" || kind == "p", try columnsOwner() == nil else { return [] }
        let found = try columns()
        var added = type.properties.indices.filter { found[mapping.columns[$0]] == nil }
        if added.isEmpty || added.contains(where: { $0 == type.primaryKey }) { return [] }
        let refused = try refused(of: added)
        added.removeAll { refused.contains($0) }
        if added.isEmpty { return [] }
        return ["ALTER TABLE \(mapping.sqlName) " + added.map { "ADD COLUMN \(definition($0, isNew: false))" }.joined(separator: ", ")]
    }

    /// Returns the statements after which changes of the table carry their old rows. An asymmetric class needs none.
    func identityStatements() throws -> [String] {
        guard type.kind == .topLevel else { return [] }
        let isThere = try relationKind() != nil
        let tables = isThere ? try TableCatalog.withoutFullIdentity(mapping, session) : [mapping.sqlName]
        return tables.map { "ALTER TABLE \($0) REPLICA IDENTITY FULL" }
    }

    /// Returns a column's definition for CREATE TABLE. In a table that has rows (`isNew` is `false`), required columns need a
    /// default.
    func definition(_ index: Int, isNew: Bool) -> String {
        let property = type.properties[index]
        let form = ColumnForm(property, in: schema)
        var text = "\(mapping.sqlColumn(index)) \(form.columnType)"
        if form.element == .string, form.code != .json { text += " COLLATE \"C\"" }
        switch property.collection {
        // Constant because: both values are written here.
        case .list, .set: return text + " NOT NULL DEFAULT '\(form.code == .json ? "[]" : "{}")'"
        case .dictionary: return text + " NOT NULL DEFAULT '{}'"
        case .none: break
        }
        guard property.isRequired || index == type.primaryKey else { return text }
        return text + " NOT NULL" + (isNew ? "" : " DEFAULT \(zero(form.code))")
    }

    private func zero(_ code: ColumnForm.Code) -> String {
        switch code {
        case .bool: "false"
        case .int, .float, .double, .decimal: "0"
        case .string, .character, .binary: "''"
        case .timestamp, .date, .localTime: "'epoch'"
        case .time, .zonedTime: "'00:00:00'"
        case .interval: "'PT0S'"
        case .objectId: "'\(String(repeating: "0", count: 24))'"
        case .uuid: "'00000000-0000-0000-0000-000000000000'"
        case .array, .set: "'{}'"
        case .json: "'null'"
        }
    }

    // MARK: Rejected columns

    /// Returns the missing columns that would put invented values into the rows of an adopted table.
    private func refused(of missing: [Int]) throws -> [Int] {
        guard isAdopted else { return [] }
        let required = missing.filter { $0 != type.primaryKey && type.properties[$0].isRequired && type.properties[$0].collection == .none }
        return try required.isEmpty || !hasRows() ? [] : required
    }

    /// Returns a failure for each required property without a column in an adopted table that has rows.
    func missingRequired(_ columns: [String: Column]) throws -> [PostgresError] {
        let missing = type.properties.indices.filter { columns[mapping.columns[$0]] == nil }
        let unused = columns.keys.filter { !mapping.columns.contains($0) }
        return try refused(of: missing).map { index in
            let name = mapping.columns[index]
            let near = Suggestion.nearest(to: name, in: unused.sorted())
            let rename = near.map {
                "If it is the column “\($0)”, write \(entry(index, $0)) into schema.json, or run ALTER TABLE \(mapping.sqlName) RENAME COLUMN \(SQLQuote.identifier($0)) TO \(mapping.sqlColumn(index)). Else make"
            }
            return failure(
                "The table \(mapping.displayName) of type \(type.name) has rows and lacks the column “\(name)”, whose property is required.",
                fix: "\(rename ?? "Make") the property optional in schema.json, or give the rows a value: "
                    + "ALTER TABLE \(mapping.sqlName) ADD COLUMN \(definition(index, isNew: false)).")
        }
    }

    /// Returns the failure of a table that lacks columns and cannot receive them; nil for any other table.
    func unalterable(_ columns: [String: Column]) throws -> PostgresError? {
        let missing = mapping.columns.indices.filter { columns[mapping.columns[$0]] == nil }
        guard !missing.isEmpty, let owner = try columnsOwner() else { return nil }
        return failure(
            "The table \(mapping.displayName) of type \(type.name) lacks the columns \(missing.map { "“\(mapping.columns[$0])”" }.joined(separator: ", ")), "
                + "and has its columns from \(owner).",
            fix: "Add them to \(owner), or name that table as the class's collection.")
    }

    private func hasRows() throws -> Bool {
        try session.query("SELECT EXISTS (SELECT FROM \(mapping.sqlName))").bool(0, 0) ?? false
    }
}
