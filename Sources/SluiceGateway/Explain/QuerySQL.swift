import SluiceCore
package import SluiceQuery
package import SluiceValues

/// A query in one SQL dialect.
package struct QuerySQL: Sendable {
    private let selection: SQLSelection
    private let dialect: SQLDialect
    private let table: String

    /// - Parameter tables: The tables of classes. Any other class has a table and columns named after it and its properties.
    package init(_ query: BoundQuery, _ dialect: SQLDialect, tables known: [String: SQLTable] = [:]) {
        let stored = query.schema.types.filter { $0.kind != .embedded }
        let tables = stored.map { type in
            let columns = type.properties.map { SQLQuote.identifier($0.name) }
            let named = SQLTable(name: SQLQuote.identifier(type.name), columns: columns, ownOrder: dialect == .sqlite ? "rowid" : nil)
            return (type.name, known[type.name] ?? named)
        }
        let layout = SQLLayout(dialect, schema: query.schema, tables: Dictionary(tables, uniquingKeysWith: { first, _ in first }))
        selection = query.sql(layout)
        self.dialect = dialect
        table = known[query.type.name]?.name ?? SQLQuote.identifier(query.type.name)
    }

    /// `true` if the SQL condition can exclude rows.
    private var narrows: Bool { selection.isExact || selection.condition.text != "TRUE" }

    private var statement: [String] {
        var lines = ["SELECT * FROM \(table) AS \(SQLLayout.row)", "WHERE \(selection.condition.text)"]
        if let order = selection.order { lines.append("ORDER BY \(order)") }
        if let limit = selection.limit { lines.append("LIMIT \(limit)") }
        return lines
    }

    /// The steps that remain after the SQL statement.
    private var rest: [String] {
        var rest = selection.isExact ? [] : ["testing each row by the condition"]
        for suffix in selection.suffixes {
            switch suffix {
            case .sort: rest.append("SORT")
            case .distinct: rest.append("DISTINCT")
            case .limit: rest.append("LIMIT")
            }
        }
        return rest
    }

    /// The query as text, one line each.
    package var lines: [String] {
        guard narrows else { return ["not expressible in SQL: every row of \(table) is read and tested"] }
        let mark = dialect == .postgres ? "$" : "?"
        let parameters = selection.condition.parameters.enumerated().map { "\(mark)\($0 + 1) = \($1.text) (\($1.typeText))" }
        return statement + parameters + (rest.isEmpty ? [] : ["applied by the gateway to the rows: \(rest.joined(separator: ", "))"])
    }

    /// The query as JSON: `{"sql": …, "where": …, "parameters": [{"value": …, "type": …}], "exact": …, "rest": […]}`. `exact` is `true`
    /// if the condition selects no row too many.
    package var json: JSON {
        [
            "sql": .string(statement.joined(separator: " ")), "where": .string(selection.condition.text),
            "parameters": .array(
                selection.condition.parameters.map { ["value": ExtendedJSON.json($0.value), "type": .string($0.typeText)] }),
            "exact": .bool(selection.isExact), "rest": .array(rest.map { .string($0) }),
        ]
    }
}

extension SQLParameter {
    fileprivate var text: String { ExtendedJSON.json(value).text }

    fileprivate var typeText: String {
        var collection = CollectionKind.none
        if case .list = value { collection = .list }
        return Property(id: 0, name: "", type: type, collection: collection).typeText
    }
}
