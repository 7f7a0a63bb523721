import SluiceCore

/// Rows by the transaction that wrote them last.
package enum RowAge: Hashable, Sendable {
    case any
    /// By one with a lower number.
    case before(UInt64)
    /// By this one or a later one.
    case since(UInt64)
}

/// Rows of one table that belong to a view.
package struct SnapshotSelection: Sendable {
    package var shape: TableShape
    /// A condition on the table's columns with parameters `$1 …`.
    package var condition: String
    package var parameters: [PostgresParameter]
    package var age: RowAge
    /// Whether a row is read as its key alone, in one cell.
    package var keysOnly: Bool
    /// The first so many in an order of columns and then of the key; nil: all.
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
        package var columns: [Column]

        package struct Column: Hashable, Sendable {
            package var index: Int
            package var isDescending: Bool

            package init(index: Int, isDescending: Bool) {
                self.index = index
                self.isDescending = isDescending
            }
        }

        package init(limit: Int, columns: [Column]) {
            self.limit = limit
            self.columns = columns
        }
    }

    package init(
        _ shape: TableShape, where condition: String = "true", _ parameters: [PostgresParameter] = [], age: RowAge = .any,
        keysOnly: Bool = false, first: First? = nil
    ) {
        self.shape = shape
        self.condition = condition
        self.parameters = parameters
        self.age = age
        self.keysOnly = keysOnly
        self.first = first
        planned = Planned(condition: condition, parameters: parameters)
    }

    var sql: String {
        let columns = keysOnly ? shape.keyColumn : shape.columnList
        return "SELECT \(columns) FROM \(shape.table) WHERE (\(condition))\(ageCondition)\(ending)"
    }

    /// The same, of which no more than `rows` rows are read; nil when it may be more by itself.
    func sql(upTo rows: Int) -> String? {
        guard let first else { return "\(sql) LIMIT \(rows)" }
        return first.limit < rows ? sql : nil
    }

    func explanation(_ planned: Planned) -> String {
        "EXPLAIN (FORMAT JSON) SELECT 1 FROM \(shape.table) WHERE (\(planned.condition))\(ending)"
    }

    private var ending: String {
        guard let first else { return "" }
        let columns = first.columns + [First.Column(index: shape.key, isDescending: false)]
        let order = columns.map { column in
            let isText = shape.type.properties[column.index].type == .string
            return shape.columns[column.index] + (isText ? " COLLATE \"C\"" : "")
                + (column.isDescending ? " DESC NULLS LAST" : " ASC NULLS FIRST")
        }
        return " ORDER BY \(order.joined(separator: ", ")) LIMIT \(first.limit)"
    }

    var values: [PostgresParameter] {
        switch age {
        case .any: parameters
        case .before(let xid), .since(let xid): parameters + [.int(Int64(UInt32(truncatingIfNeeded: xid)))]
        }
    }

    /// A row's `xmin` has the low 32 bits of the number. Of two numbers less than 2³¹ apart the difference, taken within
    /// 32 bits, tells which is lower; a row that was last written longer ago may count as new, never the other way round.
    private var ageCondition: String {
        let distance = "((xmin::text::bigint - $\(parameters.count + 1)::bigint) & 4294967295)"
        return switch age {
        case .any: ""
        case .before: " AND \(distance) >= 2147483648"
        case .since: " AND \(distance) < 2147483648"
        }
    }
}
