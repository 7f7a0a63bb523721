import SluiceCore

/// Rows by the transaction that wrote them last, or since which their table is what it is (`Publication`) if that is later.
package enum RowAge: Hashable, Sendable {
    case any
    /// By one with a lower number.
    case before(UInt64)
    /// By this one or a later one.
    case since(UInt64)
    /// By the first or a later one, and before the second.
    case between(UInt64, UInt64)
}

/// Rows by their key, in the order of `SnapshotSelection.isInOrder`.
package enum KeyRange: Hashable, Sendable {
    case all
    case through(PostgresParameter)
    case after(PostgresParameter)
}

/// Rows of one table that belong to a view.
package struct SnapshotSelection: Sendable {
    package var shape: TableShape
    /// A condition on the table's columns with parameters `$1 …`.
    package var condition: String
    package var parameters: [PostgresParameter]
    package var age: RowAge
    package var keys: KeyRange
    /// Whether the rows of a view that is not small come in the order of their keys, texts by their bytes: an order that no release
    /// of a collation changes.
    package var isInOrder: Bool
    /// Whether a row is read as its key alone, in one cell.
    package var keysOnly: Bool
    /// The first so many in an order; nil: all.
    package var first: First?
    /// What the planner is asked about when somebody wants to know how many rows there are; nil: they count in another selection.
    /// Its own condition at first, without the age, of which nobody has statistics.
    package var planned: Planned?

    package struct Planned: Hashable, Sendable {
        package var condition: String
        package var parameters: [PostgresParameter]
    }

    package struct First: Hashable, Sendable {
        package var limit: Int
        /// For ORDER BY; total.
        package var order: String
        /// What the conditions call the table.
        package var row: String
        /// Empty, or joins to other tables that add no row and leave none out.
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

    /// The same in any order, of which no more than `rows` rows are read; nil when it may be more by itself.
    func sql(upTo rows: Int) -> String? {
        guard let first else { return "\(selecting) LIMIT \(rows)" }
        return first.limit < rows ? sql : nil
    }

    private var selecting: String {
        let columns = keysOnly ? [shape.keyColumn] : shape.columns
        // Tables that are joined may have columns of the same names.
        let list = first.map { first in columns.map { "\(first.row).\($0)" } } ?? columns
        return "SELECT \(list.joined(separator: ", ")) FROM \(source) WHERE (\(condition))\(ageCondition)\(keyCondition)"
    }

    private var source: String { first.map { "\(shape.table) AS \($0.row)\($0.joins)" } ?? shape.table }

    private var orderedKey: String { shape.keyColumn + (shape.type.properties[shape.key].type == .string ? " COLLATE \"C\"" : "") }

    func explanation(_ planned: Planned) -> String {
        "EXPLAIN (FORMAT JSON) SELECT 1 FROM \(source) WHERE (\(planned.condition))\(ending)"
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

    /// A row's `xmin` has the low 32 bits of the number. Of two numbers less than 2³¹ apart the difference, taken within
    /// 32 bits, tells which is lower; a row that was last written longer ago may count as new, never the other way round.
    /// What is not known of a table is as old as it can be.
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
