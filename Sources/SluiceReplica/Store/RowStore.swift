package import SluiceCore
import SluiceQuery

/// The tables of classes as seen by one connection: what apps see.
package final class RowStore {
    let connection: Connection
    package let layouts: [TableLayout]
    /// Reused for scans.
    private var scratch = RowBuffer()

    /// What the layouts are of.
    let schema: Schema
    /// The tables as conditions in SQL see them.
    let sql: SQLLayout
    /// Many objects of one class are made in a row: looking the statement up by its text would cost a tenth of each.
    private var lastInsert: (type: Int, statement: Statement)?

    let links: LinkIndex
    /// Whether rows may have changed since the links were indexed.
    let isWriter: Bool
    /// What the open transaction has not written yet; empty for readers.
    let edits = EditedCollections()
    /// By class: how places in the table's order are found. A writer's are of its open transaction.
    var blocks: [Int: RowBlocks] = [:]

    init(connection: Connection, layouts: [TableLayout], links: LinkIndex, isWriter: Bool) {
        self.connection = connection
        self.layouts = layouts
        schema = Schema(layouts.map(\.type))
        sql = TableLayout.sql(layouts, schema: schema, links: links)
        self.links = links
        self.isWriter = isWriter
    }

    /// The row of an object; nil when there is none. About 2 µs.
    package func row(type: Int, key: Value) throws(SluiceError) -> Row? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        if !edits.isEmpty, case let edited = edits.of(type, key), !edited.isEmpty { return try row(layout, key: key, with: edited) }
        let statement = try connection.statement("SELECT \(layout.columns) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        guard try statement.step() else { return nil }
        scratch.removeAll()
        let row = layout.read(statement, into: &scratch)
        statement.reset()
        return scratch.withView(row) { Row($0) }
    }

    package func contains(type: Int, key: Value) throws(SluiceError) -> Bool {
        let layout = layouts[type]
        guard layout.hasTable else { return false }
        let statement = try connection.statement("SELECT 1 FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// The indices of the keys that are those of objects. About 1 µs each.
    package func indices(type: Int, ofPresent keys: [Value]) throws(SluiceError) -> [Int] {
        let layout = layouts[type]
        guard layout.hasTable else { return [] }
        let statement = try connection.statement("SELECT 1 FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        defer { statement.reset() }
        var present: [Int] = []
        present.reserveCapacity(keys.count)
        for (index, key) in keys.enumerated() {
            layout.bindKey(key, at: 0, to: statement)
            if try statement.step() { present.append(index) }
            statement.reset()
        }
        return present
    }

    /// The number that the table's order is by; nil when there is no such object, but for one whose key is that number.
    func rowid(type: Int, key: Value) throws(SluiceError) -> Int64? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        if case .int(let number) = key, layout.keyIsRowid { return number }
        let statement = try connection.statement("SELECT \(layout.rowid) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : nil
    }

    /// The version of the state that is seen; within a transaction that of the state before it.
    func version() throws(SluiceError) -> UInt64 { try connection.version() }

    package func count(type: Int) throws(SluiceError) -> Int {
        guard layouts[type].hasTable else { return 0 }
        let statement = try connection.statement("SELECT count(*) FROM \(layouts[type].table)")
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    /// Visits all rows in the table's order; the view is valid during the call only.
    package func scan(type: Int, _ visit: (RowView) throws(SluiceError) -> Void) throws(SluiceError) {
        let layout = layouts[type]
        guard layout.hasTable else { return }
        try settle()
        let statement = try connection.statement("SELECT \(layout.columns) FROM \(layout.table) ORDER BY \(layout.rowid)")
        defer { statement.reset() }
        var buffer = RowBuffer()
        while try statement.step() {
            buffer.removeAll()
            let row = layout.read(statement, into: &buffer)
            try buffer.withView(row, visit)
        }
    }

    // MARK: Changing

    /// - Returns: whether something changed.
    func put(type: Int, _ row: Row) throws(SluiceError) -> Bool {
        let statement = try connection.statement(layouts[type].upsert)
        layouts[type].bind(row, to: statement)
        try statement.run()
        guard connection.changes > 0 else { return false }
        if !blocks.isEmpty, let key = row[layouts[type].key] { rowsChanged(layouts[type], key: key, isNew: true) }
        return true
    }

    /// - Parameter values: one per property.
    /// - Returns: false when there is a row with the key already.
    func insert(type: Int, _ values: [Value]) throws(SluiceError) -> Bool {
        let layout = layouts[type]
        let statement: Statement
        if let last = lastInsert, last.type == type {
            statement = last.statement
        } else {
            statement = try connection.statement(layout.insertion)
            lastInsert = (type, statement)
        }
        layout.bind(values, to: statement)
        try statement.run()
        guard connection.changes > 0 else { return false }
        if !blocks.isEmpty { rowsChanged(layout, key: values[layout.key], isNew: true) }
        return true
    }

    func delete(type: Int, key: Value) throws(SluiceError) -> Bool {
        let layout = layouts[type]
        let statement = try connection.statement("DELETE FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        try statement.run()
        guard connection.changes > 0 else { return false }
        if !blocks.isEmpty { rowsChanged(layout, key: key, isNew: false) }
        return true
    }
}

extension RowStore {
    /// - Returns: whether the object is there.
    func update(type: Int, key: Value, property: Int, _ value: Value) throws(SluiceError) -> Bool {
        let layout = layouts[type]
        let before = try linksToFollow(layout, key: key, property)
        let column = SQLQuote.identifier(layout.type.properties[property].name)
        let statement = try connection.statement("UPDATE \(layout.table) SET \(column) = ? WHERE \(layout.keyColumn) = ?")
        layout.bind(value, property: property, at: 0, to: statement)
        layout.bindKey(key, at: 1, to: statement)
        try statement.run()
        guard connection.changes > 0 else { return false }
        if let before { try followLinks(layout, key: key, property, from: before, to: value) }
        return true
    }
}
