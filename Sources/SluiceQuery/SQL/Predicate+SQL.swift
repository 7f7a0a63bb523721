package import SluiceCore

/// A condition on one row, divided between a database and the code that reads its rows.
package struct SQLSplit: Sendable {
    /// Selects every row that the whole condition accepts. Without a residual it selects no other row.
    package var condition: SQLCondition
    /// The further condition on a selected row, or nil if `condition` is complete.
    package var residual: Predicate?

    package init(condition: SQLCondition, residual: Predicate?) {
        self.condition = condition
        self.residual = residual
    }
}

extension Predicate {
    /// Returns SQL for exactly the rows that `matches` accepts. `SQLLayout` describes the columns.
    ///
    /// - Parameters:
    ///   - firstParameter: The number of the first placeholder, `$1` or `?1`.
    ///   - column: The expression of a property by its index. Nil is the quoted name.
    /// - Throws: `queryUnsupported` for a condition without an exact form in the dialect. `split` accepts every condition.
    package func sql(
        _ dialect: SQLDialect, firstParameter: Int = 1, column: ((Int) -> String)? = nil
    ) throws(SluiceError) -> SQLCondition {
        let split = split(dialect, firstParameter: firstParameter, column: column)
        guard split.residual == nil else {
            throw SluiceError(
                .queryUnsupported, "the condition \(String(canonicalText.prefix(200))) has no exact form in this database.",
                fix: "Evaluate it on rows.")
        }
        return split.condition
    }

    /// Returns SQL that selects at least the rows that `matches` accepts, and the residual condition on them.
    ///
    /// Parts of a top-level AND with an exact form in SQL are not in the residual. These have no exact form: values of mixed properties;
    /// LIKE with `?` or inner stars on binary data and in SQLite; `[c]` on binary data. Nor have comparisons of two number types or of two
    /// floating properties. In SQLite decimals, lists, `[c]` with five or more accented letters, and conditions beyond its limits have
    /// none. O(size of the condition).
    package func split(_ dialect: SQLDialect, firstParameter: Int = 1, column: ((Int) -> String)? = nil) -> SQLSplit {
        let parts = if case .and(let parts) = bound { parts } else { [bound] }
        let printer = SQLPrinter(dialect: dialect)
        var whole = SQLWhole(dialect, firstParameter: firstParameter)
        var rest: [BoundPredicate] = []
        for part in parts {
            let piece = printer.superset(part, of: type) { index in
                SQLText(name: column?(index) ?? SQLQuote.identifier(type.properties[index].name))
            }
            if !whole.add(piece) { rest.append(part) }
        }
        return SQLSplit(condition: whole.condition, residual: rest.isEmpty ? nil : Predicate(type: type, bound: .conjunction(rest)))
    }
}

/// The parts of a top-level AND that fit into the dialect's limits.
struct SQLWhole {
    private let dialect: SQLDialect
    private let firstParameter: Int
    private var pieces: [SQLPiece] = []
    private var leaves = 0
    private var parameters = 0

    init(_ dialect: SQLDialect, firstParameter: Int) {
        self.dialect = dialect
        self.firstParameter = firstParameter
    }

    /// - Returns: `true` if the piece is exact and is part of the SQL.
    mutating func add(_ piece: SQLPiece) -> Bool {
        let count = piece.text.parameterCount
        guard leaves + piece.leaves <= dialect.mostLeaves, piece.depth <= dialect.mostLevels,
            firstParameter + parameters + count <= dialect.mostParameters
        else { return false }
        leaves += piece.leaves
        parameters += count
        pieces.append(piece)
        return piece.isExact
    }

    var condition: SQLCondition { SQLPiece.all(pieces).text.condition(dialect, first: firstParameter) }
}
