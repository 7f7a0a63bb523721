import SluiceCore
import SluiceQuery

/// A selection of rows of a class by SQL, with the properties to read.
struct RowSelection {
    var type: Int
    /// The condition on the table as `SQLLayout.row`.
    var condition = SQLCondition(text: "TRUE", parameters: [])
    /// The ORDER BY clause. `nil` is the table's order, that of insertion.
    var order: String?
    var limit: Int?
    /// The number of rows to skip. Only with `limit`.
    var offset = 0
    /// Restricts the selection to the row with this key.
    var key: Value?
    /// Ascending. Other properties read as absent.
    var properties: [Int] = []
    /// `true` if other rows are read during the visit, possibly by the same statement text.
    var isNested = false
    /// `true` if the order matters.
    var isOrdered = true
}

extension RowStore {
    /// Visits the rows with their keys until the body returns `false`. The view is valid only during the call.
    func visit(_ selection: RowSelection, _ body: (Value, RowView) throws(SluiceError) -> Bool) throws(SluiceError) {
        try visitNumbered(selection) { key, _, row throws(SluiceError) in try body(key, row) }
    }

    /// Visits the rows with their keys and row numbers, which define the table's order.
    func visitNumbered(_ selection: RowSelection, _ body: (Value, Int64, RowView) throws(SluiceError) -> Bool) throws(SluiceError) {
        let layout = layouts[selection.type]
        guard layout.hasTable else { return }
        // SQL must see the edits that are still in memory.
        try settle()
        let sql = text(of: selection)
        let statement = selection.isNested ? try Statement(sql, on: connection) : try connection.statement(sql)
        layout.bind(selection.condition, to: statement)
        if let key = selection.key { layout.bindKey(key, at: selection.condition.parameters.count, to: statement) }
        defer { statement.reset() }
        var buffer = RowBuffer()
        while try statement.step() {
            buffer.removeAll()
            let key = layout.readKey(statement)
            let number = statement.int(1)
            let part = layout.read(statement, selection.properties, from: 2, into: &buffer)
            guard try buffer.withView(part, { view throws(SluiceError) in try body(key, number, view) }) else { return }
        }
    }

    private func text(of selection: RowSelection) -> String {
        let layout = layouts[selection.type]
        let row = SQLLayout.row
        let columns = [layout.keyColumn, layout.rowid] + selection.properties.map { SQLQuote.identifier(layout.type.properties[$0].name) }
        var sql = "SELECT \(columns.map { "\(row).\($0)" }.joined(separator: ", ")) FROM \(layout.table) AS \(row)"
        if selection.condition.text != "TRUE" || selection.key != nil { sql += " WHERE \(selection.condition.text)" }
        if selection.key != nil { sql += " AND \(row).\(layout.keyColumn) = ?\(selection.condition.parameters.count + 1)" }
        if selection.isOrdered { sql += " ORDER BY \(selection.order ?? "\(row).\(layout.rowid)")" }
        if let limit = selection.limit { sql += " LIMIT \(limit)\(selection.offset > 0 ? " OFFSET \(selection.offset)" : "")" }
        return sql
    }

    func explanation(of selection: RowSelection) throws(SluiceError) -> String {
        let statement = try Statement("EXPLAIN QUERY PLAN \(text(of: selection))", on: connection)
        layouts[selection.type].bind(selection.condition, to: statement)
        var lines: [String] = []
        while try statement.step() { lines.append(statement.string(3)) }
        return lines.joined(separator: "\n")
    }

    /// Returns the first column of an aggregate expression over the selected rows.
    func value<R>(
        of expression: String, _ type: Int, _ condition: SQLCondition, _ read: (Statement) -> R
    ) throws(SluiceError) -> R? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        try settle()
        let statement = try connection.statement(
            "SELECT \(expression) FROM \(layout.table) AS \(SQLLayout.row) WHERE \(condition.text)")
        layout.bind(condition, to: statement)
        defer { statement.reset() }
        return try statement.step() ? read(statement) : nil
    }
}

extension TableLayout {
    func bind(_ condition: SQLCondition, to statement: Statement) {
        for (index, parameter) in condition.parameters.enumerated() { bind(parameter.value, at: index, to: statement) }
    }

    /// Appends a row of which only some properties are read. The others are absent.
    func read(_ statement: Statement, _ properties: [Int], from first: Int, into buffer: inout RowBuffer) -> RowRef {
        buffer.beginRow()
        var column = first
        for property in kinds.indices where !properties.isEmpty {
            if column - first < properties.count, properties[column - first] == property {
                append(statement, column, kinds[property], to: &buffer)
                column += 1
            } else {
                buffer.append(Cell.absent)
            }
        }
        return buffer.endRow()
    }
}
