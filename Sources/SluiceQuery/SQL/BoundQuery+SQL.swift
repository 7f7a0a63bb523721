import SluiceCore

/// A query, parted between a database and the code that reads its rows.
package struct SQLSelection: Sendable {
    /// Selects every row of `FROM table AS t0` that the query's condition accepts, and no other when nothing is left over.
    package var condition: SQLCondition
    /// What a selected row must meet besides; nil when the condition says all.
    package var residual: CompiledQuery?
    /// For ORDER BY; nil where the rows' order is nobody's matter or is left over.
    package var order: String?
    /// For LIMIT.
    package var limit: Int?
    /// SORT, DISTINCT and LIMIT that are left to be applied to the selected rows, by `BoundQuery.arranged`.
    package var suffixes: [BoundSuffix]

    package var isExact: Bool { residual == nil }
}

extension BoundQuery {
    /// The condition as SQL that selects no fewer rows than `matches` accepts, and what is left to check on them.
    ///
    /// Beside what `Predicate.split` says of one row: links are followed and come back by sub-selects, quantifiers become EXISTS, and
    /// counts count(*). Left over are documents (embedded objects, dictionaries, mixed values; in SQLite collections), calculations,
    /// `@sum` and `@avg`, `@type`, TEXT, GEOWITHIN and `@links.@count`. SORT goes to SQL when the order is total, LIMIT when all before it
    /// did; DISTINCT never does. O(size of the condition).
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
            selection.residual = CompiledQuery(type: type, code: GraphCompiler.compile(left, type, schema))
        }
        arrange(&selection, layout)
        return selection
    }

    /// Moves suffixes from the front into SQL, as long as they mean the same there.
    private func arrange(_ selection: inout SQLSelection, _ layout: SQLLayout) {
        guard let table = layout.tables[type.name] else { return }
        var keys: [BoundSuffix.Key] = []
        while case .sort(let next)? = selection.suffixes.first, next.allSatisfy({ ownProperty($0.path, layout) != nil }) {
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

    /// A property of the row that the database orders as the language does.
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

    /// Null first ascending, text by its bytes.
    private func term(_ column: String, _ type: PropertyType, _ ascending: Bool, _ dialect: SQLDialect) -> String {
        if dialect == .sqlite {
            let direction = ascending ? "ASC" : "DESC"
            guard type == .float || type == .double else { return "\(column) \(direction)" }
            // What is no number lies in blobs: NaN, which comes between null and the numbers, and -0, which is 0.
            let isBlob = "typeof(\(column)) = 'blob'"
            let isNaN = "\(isBlob) AND \(column) NOT IN (x'80000000', x'8000000000000000')"
            return "CASE WHEN \(column) IS NULL THEN 0 WHEN \(isNaN) THEN 1 ELSE 2 END \(direction), "
                + "CASE WHEN \(isBlob) THEN 0.0 ELSE \(column) END \(direction)"
        }
        let collation = type == .string || type == .objectId ? " COLLATE \"C\"" : ""
        return "\(column)\(collation) \(ascending ? "ASC NULLS FIRST" : "DESC NULLS LAST")"
    }
}
