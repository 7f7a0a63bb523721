import SluiceCore

/// A query divided between a database and the code that reads its rows.
package struct SQLSelection: Sendable {
    /// Selects every row of `FROM table AS t0` that the query accepts. Without a residual it selects no other row.
    package var condition: SQLCondition
    /// The further condition on a selected row, or nil if `condition` is complete.
    package var residual: CompiledQuery?
    /// The text for ORDER BY. Nil if the order is arbitrary, or if the caller must sort.
    package var order: String?
    /// The count for LIMIT.
    package var limit: Int?
    /// The SORT, DISTINCT and LIMIT that the caller applies to the selected rows with `BoundQuery.arranged`.
    package var suffixes: [BoundSuffix]

    package var isExact: Bool { residual == nil }
}

extension BoundQuery {
    /// Returns SQL that selects at least the rows that `matches` accepts, and the residual condition on them.
    ///
    /// It covers the parts that `Predicate.split` covers. Sub-selects follow links in both directions, quantifiers become EXISTS, and
    /// counts count(*). The residual has documents (embedded objects, dictionaries, mixed values; in SQLite collections), calculations,
    /// `@sum`, `@avg`, `@type`, TEXT, GEOWITHIN and `@links.@count`. SORT moves to SQL if the order is total, and LIMIT if everything
    /// before it has. DISTINCT never does. O(size of the condition).
    package func sql(_ layout: SQLLayout, firstParameter: Int = 1) -> SQLSelection {
        let parts = if case .and(let parts) = condition { parts } else { [condition] }
        var whole = SQLWhole(layout.dialect, firstParameter: firstParameter)
        var rest: [BoundCondition] = []
        let printer = SQLConditionPrinter(
            layout: layout, names: SQLNames(), scope: SQLScope(objects: [(SQLText(name: SQLLayout.row), type)]))
        for part in parts {
            let piece = layout.tables[type.name] == nil ? SQLPiece.unknown : printer.superset(part)
            if !whole.add(piece) { rest.append(part) }
        }
        var selection = SQLSelection(condition: whole.condition, suffixes: suffixes)
        if !rest.isEmpty {
            let left = rest.count == 1 ? rest[0] : .and(rest)
            selection.residual = CompiledQuery(type: type, code: GraphCompiler.compile(left, type, schema, variable: 0))
        }
        arrange(&selection, layout)
        return selection
    }

    /// Moves suffixes from the front into SQL as long as their meaning is the same.
    private func arrange(_ selection: inout SQLSelection, _ layout: SQLLayout) {
        guard let table = layout.tables[type.name] else { return }
        var keys: [BoundSuffix.Key] = []
        while case .sort(let next)? = selection.suffixes.first, next.allSatisfy({ ownProperty($0.path, layout) != nil }) {
            // A later SORT is more significant and keeps the earlier order for ties.
            keys = next + keys
            selection.suffixes.removeFirst()
        }
        var terms = keys.map { key in
            let index = ownProperty(key.path, layout) ?? 0
            return term("\(SQLLayout.row).\(table.columns[index])", type.properties[index].type, key.ascending, layout.dialect)
        }
        let hasKey = keys.contains { ownProperty($0.path, layout) == type.primaryKey }
        if let own = table.ownOrder { terms.append("\(SQLLayout.row).\(own)") }
        guard table.ownOrder != nil || hasKey else {
            // Rows that are equal in all keys have no order of their own here.
            selection.suffixes = suffixes
            return
        }
        selection.order = terms.joined(separator: ", ")
        guard selection.isExact, case .limit(let count)? = selection.suffixes.first else { return }
        selection.limit = count
        selection.suffixes.removeFirst()
    }

    /// Returns the property of the row if the database orders it as the language does.
    private func ownProperty(_ path: BoundPath, _ layout: SQLLayout) -> Int? {
        guard path.result == .values, path.steps.count == 2, path.steps[0] == .variable(0), case .property(let index) = path.steps[1] else {
            return nil
        }
        switch type.properties[index].type {
        case .bool, .int, .string, .binary, .timestamp, .objectId, .uuid: return type.properties[index].collection == .none ? index : nil
        case .float, .double: return layout.dialect == .sqlite && type.properties[index].collection == .none ? index : nil
        default: return nil
        }
    }

    /// Returns an ORDER BY term: null first if ascending, text by its bytes.
    private func term(_ column: String, _ type: PropertyType, _ ascending: Bool, _ dialect: SQLDialect) -> String {
        if dialect == .sqlite {
            let direction = ascending ? "ASC" : "DESC"
            guard type == .float || type == .double else { return "\(column) \(direction)" }
            // Blobs store NaN, which is between null and the numbers, and -0, which equals 0.
            let isBlob = "typeof(\(column)) = 'blob'"
            let isNaN = "\(isBlob) AND \(column) NOT IN (x'80000000', x'8000000000000000')"
            return "CASE WHEN \(column) IS NULL THEN 0 WHEN \(isNaN) THEN 1 ELSE 2 END \(direction), "
                + "CASE WHEN \(isBlob) THEN 0.0 ELSE \(column) END \(direction)"
        }
        let collation = type == .string || type == .objectId ? " COLLATE \"C\"" : ""
        return "\(column)\(collation) \(ascending ? "ASC NULLS FIRST" : "DESC NULLS LAST")"
    }
}
