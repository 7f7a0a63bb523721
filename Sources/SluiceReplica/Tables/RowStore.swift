package import SluiceCore
import SluiceQuery

/// The tables of classes, which hold the shown objects, as seen by one connection. Confined like its connection.
package final class RowStore {
    let connection: Connection
    package let layouts: [TableLayout]
    /// Reused between reads.
    private var scratch = RowBuffer()

    /// The schema of the layouts.
    let schema: Schema
    /// The tables as SQL conditions see them.
    let sql: SQLLayout
    /// The statement of the last insertion. Objects of one class are often created in a row; a lookup by text would cost a tenth of each.
    private var lastInsert: (type: Int, statement: Statement)?

    let links: LinkIndex
    /// `true` for the writer, whose rows may have changed since the links were indexed.
    let isWriter: Bool
    /// The edits that the open transaction has not written yet. Empty for readers.
    let edits = EditedCollections()
    /// By class: the blocks that find an index in table order. Those of a writer describe its open transaction.
    var blocks: [Int: RowBlocks] = [:]

    init(connection: Connection, layouts: [TableLayout], links: LinkIndex, isWriter: Bool) {
        self.connection = connection
        self.layouts = layouts
        schema = Schema(layouts.map(\.type))
        sql = TableLayout.sql(layouts, schema: schema, links: links)
        self.links = links
        self.isWriter = isWriter
    }

    /// Returns the row of an object, or `nil` if it does not exist. About 2 µs.
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

    /// Returns the indices of the keys that belong to existing objects. About 1 µs each.
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

    /// Returns the row number of an object, which defines the table's order, or `nil` if it does not exist. An integer key is returned
    /// unchecked, as it is the row number itself.
    func rowid(type: Int, key: Value) throws(SluiceError) -> Int64? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        if case .int(let number) = key, layout.keyIsRowid { return number }
        let statement = try connection.statement("SELECT \(layout.rowid) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : nil
    }

    /// Returns the version of the state that is seen. Within a transaction, that of the state before it.
    func version() throws(SluiceError) -> UInt64 { try connection.version() }

    package func count(type: Int) throws(SluiceError) -> Int {
        guard layouts[type].hasTable else { return 0 }
        let statement = try connection.statement("SELECT count(*) FROM \(layouts[type].table)")
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    /// Visits all rows in table order. The view is valid only during the call.
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

    /// Inserts or replaces a row.
    /// - Returns: `true` if the row is new or a value changed.
    func put(type: Int, _ row: Row) throws(SluiceError) -> Bool {
        let statement = try connection.statement(layouts[type].upsert)
        layouts[type].bind(row, to: statement)
        try statement.run()
        guard connection.changes > 0 else { return false }
        if !blocks.isEmpty, let key = row[layouts[type].key] { rowsChanged(layouts[type], key: key, isNew: true) }
        return true
    }

    /// Inserts a row.
    /// - Parameter values: one per property.
    /// - Returns: `false` if a row with the key exists.
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
    /// Sets one property of an object.
    /// - Returns: `true` if the object exists.
    func update(type: Int, key: Value, property: Int, _ value: Value) throws(SluiceError) -> Bool {
        let layout = layouts[type]
        // Read before the update: the index change is the difference between the two lists.
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
