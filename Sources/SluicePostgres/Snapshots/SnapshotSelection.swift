import SluiceCore

/// A selection of rows by the transaction that last wrote them. If their table was published later (`Publication`), that counts
/// instead.
package enum RowAge: Hashable, Sendable {
    case any
    /// Written by a transaction with a lower number.
    case before(UInt64)
    /// Written by this transaction or a later one.
    case since(UInt64)
    /// Written by the first transaction or a later one, and before the second.
    case between(UInt64, UInt64)
}

/// A selection of rows by key, in the order of `SnapshotSelection.isInOrder`.
package enum KeyRange: Hashable, Sendable {
    case all
    case through(PostgresParameter)
    case after(PostgresParameter)
}

/// Rows of one table that belong to a view.
package struct SnapshotSelection: Sendable {
    package var shape: TableShape
    /// An SQL condition on the table's columns, with parameters `$1 …`.
    package var condition: String
    package var parameters: [PostgresParameter]
    package var age: RowAge
    package var keys: KeyRange
    /// `true` if the rows of a large view arrive in the order of their keys, texts by bytes. No new version of a collation changes
    /// it.
    package var isInOrder: Bool
    /// `true` if only the key of a row is read, into one cell.
    package var keysOnly: Bool
    /// The limit of rows and their order; nil for all rows.
    package var first: First?
    /// The condition for the estimate of the row count (`RowEstimate`); nil if another selection counts these rows.
    ///
    /// It is initially the selection's own condition, without the age, for which no statistics exist.
    package var planned: Planned?

    package struct Planned: Hashable, Sendable {
        package var condition: String
        package var parameters: [PostgresParameter]
    }

    package struct First: Hashable, Sendable {
        package var limit: Int
        /// The terms of ORDER BY. The order is total.
        package var order: String
        /// The alias of the table in the conditions.
        package var row: String
        /// Joins to other tables, or empty. They neither add nor remove rows.
        package var joins: String

        package init(limit: Int, order: String, row: String, joins: String = "") {
            self.limit = limit
            self.order = order
            self.row = row
            self.joins = joins
        }
    }

    package init(
        _ shape: TableShape, where condition: String = "true", _ parameters: [PostgresParameter] = [], age: RowAge = .any,
        keys: KeyRange = .all, isInOrder: Bool = false, keysOnly: Bool = false, first: First? = nil
    ) {
        self.shape = shape
        self.condition = condition
        self.parameters = parameters
        self.age = age
        self.keys = keys
        self.isInOrder = isInOrder
        self.keysOnly = keysOnly
        self.first = first
        planned = Planned(condition: condition, parameters: parameters)
    }

    var sql: String { selecting + (isInOrder ? " ORDER BY \(orderedKey)" : ending) }

    /// Returns SQL that reads at most `rows` rows, in any order; nil if the selection's own limit is `rows` or more.
    func sql(upTo rows: Int) -> String? {
        guard let first else { return "\(selecting) LIMIT \(rows)" }
        return first.limit < rows ? sql : nil
    }

    private var selecting: String {
        let columns = keysOnly ? [shape.keyColumn] : shape.columns
        // Joined tables may have columns of the same names.
        let list = first.map { first in columns.map { "\(first.row).\($0)" } } ?? columns
        return "SELECT \(list.joined(separator: ", ")) FROM \(source) WHERE (\(condition))\(ageCondition)\(keyCondition)"
    }

    private var source: String { first.map { "\(shape.table) AS \($0.row)\($0.joins)" } ?? shape.table }

    private var orderedKey: String { shape.lookupKey + (shape.type.properties[shape.key].type == .string ? " COLLATE \"C\"" : "") }

    func explanation(_ planned: Planned) -> String {
        "EXPLAIN (FORMAT JSON) SELECT 1 FROM \(source) WHERE (\(planned.condition))\(ending)"
    }

    /// Returns SQL that counts the rows in a random part of the table's pages.
    func sample(_ planned: Planned, percent: Double) -> String {
        let name = first.map { " AS \($0.row)" } ?? ""
        return """
            SELECT count(*) FROM \(shape.table)\(name) TABLESAMPLE SYSTEM (\(percent))\(first?.joins ?? "") \
            WHERE (\(planned.condition))
            """
    }

    private var ending: String { first.map { " ORDER BY \($0.order) LIMIT \($0.limit)" } ?? "" }

    var values: [PostgresParameter] {
        let ages: [PostgresParameter] =
            switch age {
            case .any: []
            case .before(let xid), .since(let xid): [.int(Int64(clamping: xid))]
            case .between(let first, let end): [.int(Int64(clamping: first)), .int(Int64(clamping: end))]
            }
        return switch keys {
        case .all: parameters + ages
        case .through(let key), .after(let key): parameters + ages + [key]
        }
    }

    private var ageCondition: String {
        switch age {
        case .any: ""
        case .before: " AND \(isBefore(parameters.count + 1))"
        case .since: " AND NOT \(isBefore(parameters.count + 1))"
        case .between: " AND NOT \(isBefore(parameters.count + 1)) AND \(isBefore(parameters.count + 2))"
        }
    }

    /// Returns the condition that a row is older than a transaction number.
    ///
    /// A row's `xmin` has the low 32 bits of the number. If two numbers are less than 2³¹ apart, their difference modulo 2³² shows
    /// the lower one. A row that was last written longer ago may count as new, never the reverse. A table without a known
    /// publication counts as oldest.
    private func isBefore(_ parameter: Int) -> String {
        """
        (((xmin::text::bigint - $\(parameter)::bigint) & 4294967295) >= 2147483648 AND coalesce(( \
        SELECT since < $\(parameter)::bigint::text::xid8 FROM sluice.published_table \
        WHERE table_name = \(SQLQuote.postgresLiteral(shape.table))), true))
        """
    }

    private var keyCondition: String {
        switch keys {
        case .all: ""
        case .through: " AND \(orderedKey) <= $\(values.count)"
        case .after: " AND \(orderedKey) > $\(values.count)"
        }
    }
}
