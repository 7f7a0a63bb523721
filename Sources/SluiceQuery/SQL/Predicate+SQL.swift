package import SluiceCore

/// A condition on one row, parted between a database and the code that reads its rows.
package struct SQLSplit: Sendable {
    /// Selects every row that the whole accepts, and no other when nothing is left over.
    package var condition: SQLCondition
    /// What a selected row must meet besides; nil when the condition says all.
    package var residual: Predicate?

    package init(condition: SQLCondition, residual: Predicate?) {
        self.condition = condition
        self.residual = residual
    }
}

extension Predicate {
    /// The condition in SQL, with exactly the rows that `matches` accepts; see `SQLLayout` for what the columns must hold.
    ///
    /// - Parameters:
    ///   - firstParameter: the number of the first placeholder, `$1` or `?1`.
    ///   - column: the expression of a property by its index; the quoted name when nil.
    /// - Throws: `queryUnsupported` for what the dialect cannot say exactly; `split` says as much as it can.
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

    /// The condition as SQL that selects no fewer rows than `matches` accepts, and what is left to check on them.
    ///
    /// The parts of an AND at the top that SQL says exactly are not left over. Beyond SQL are: values of mixed properties; LIKE with `?`
    /// or inner stars on binary data and in SQLite; `[c]` on binary data; numbers of two types or floating ones against each other; in
    /// SQLite decimals, lists, `[c]` with five accented letters or more, and what exceeds its limits. O(size of the condition).
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

/// The parts of an AND at the top, as many as the dialect's limits have room for.
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

    /// - Returns: whether the piece says all that it stands for.
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
