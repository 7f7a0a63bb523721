package import SluiceCore
import SluiceQuery

/// Which links can be followed backwards, and the index for it.
///
/// A link of its own column has an index on the column. Links in collections lie inside of blobs: triggers note the keys of rows
/// whose collections change, and before anybody else sees the transaction, `RowStore.updateLinks` puts the links of those rows
/// into `_sluice_link`. It is derived: what is in the tables of classes counts.
struct LinkIndex: Sendable {
    /// Properties by type: indices into the schema.
    private let single: [Int: [Int]]
    let collections: [Int: [Int]]

    static let tables = """
        CREATE TABLE IF NOT EXISTS _sluice_inverse (type TEXT, property TEXT, PRIMARY KEY (type, property)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_link (
            type TEXT, property TEXT, target, key, count INTEGER, PRIMARY KEY (type, property, target, key)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS _sluice_link_origin ON _sluice_link (type, key);
        CREATE TABLE IF NOT EXISTS _sluice_link_dirty (type TEXT, key, PRIMARY KEY (type, key)) WITHOUT ROWID;
        """

    /// - Parameter inverses: names of link properties by class name; names that are no links are passed over.
    init(_ inverses: [String: Set<String>], schema: Schema) {
        var (single, collections): ([Int: [Int]], [Int: [Int]]) = ([:], [:])
        for (index, type) in schema.types.enumerated() where type.kind == .topLevel {
            for name in (inverses[type.name] ?? []).sorted() {
                guard let property = type.index(of: name), case .link = type.properties[property].type else { continue }
                if type.properties[property].collection == .none {
                    single[index, default: []].append(property)
                } else {
                    collections[index, default: []].append(property)
                }
            }
        }
        self.single = single
        self.collections = collections
    }

    /// Whether the links of a property are found by their targets.
    func covers(_ type: Int, _ property: Int) -> Bool {
        single[type]?.contains(property) ?? false || collections[type]?.contains(property) ?? false
    }

    /// Makes the index fit the classes, after their tables have been made.
    func fit(_ store: RowStore) throws(SluiceError) {
        let connection = store.connection
        try connection.execute(LinkIndex.tables)
        for (type, properties) in single {
            let layout = store.layouts[type]
            for property in properties {
                let name = layout.type.properties[property].name
                let index = TableLayout.quoted("_sluice_inverse_\(layout.type.name).\(name)")
                try connection.execute("CREATE INDEX IF NOT EXISTS \(index) ON \(layout.table) (\(TableLayout.quoted(name)))")
            }
        }
        for type in store.layouts.indices where store.layouts[type].hasTable { try fit(store.layouts[type], connection) }
        try store.updateLinks()
    }

    private func fit(_ layout: TableLayout, _ connection: Connection) throws(SluiceError) {
        let wanted = Set((collections[layout.index] ?? []).map { layout.type.properties[$0].name })
        let known = try connection.statement("SELECT property FROM _sluice_inverse WHERE type = ?")
        known.bind(0, layout.type.name)
        var before: Set<String> = []
        while try known.step() { before.insert(known.string(0)) }
        known.reset()
        let trigger = TableLayout.quoted("_sluice_link_update_\(layout.type.name)")
        // A table that was made anew has lost its triggers; one whose links are not asked for any more does without them.
        let exists = try connection.statement("SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = ?")
        exists.bind(0, "_sluice_link_update_\(layout.type.name)")
        let isThere = try exists.step()
        exists.reset()
        if wanted == before && isThere == !wanted.isEmpty { return }
        let others = ["insert", "delete"].map { TableLayout.quoted("_sluice_link_\($0)_\(layout.type.name)") }
        for name in others + [trigger] { try connection.execute("DROP TRIGGER IF EXISTS \(name)") }
        let forget = try connection.statement("DELETE FROM _sluice_inverse WHERE type = ?")
        forget.bind(0, layout.type.name)
        try forget.run()
        let clear = try connection.statement("DELETE FROM _sluice_link WHERE type = ?")
        clear.bind(0, layout.type.name)
        try clear.run()
        if wanted.isEmpty { return }
        let columns = wanted.sorted().map(TableLayout.quoted).joined(separator: ", ")
        try connection.execute(
            """
            CREATE TRIGGER \(others[0]) AFTER INSERT ON \(layout.table) BEGIN \(note(layout, "new")); END;
            CREATE TRIGGER \(others[1]) AFTER DELETE ON \(layout.table) BEGIN \(note(layout, "old")); END;
            CREATE TRIGGER \(trigger) AFTER UPDATE OF \(columns) ON \(layout.table) BEGIN \(note(layout, "new")); END;
            INSERT OR IGNORE INTO _sluice_link_dirty SELECT \(text(layout.type.name)), \(layout.keyColumn) FROM \(layout.table);
            """)
        for name in wanted {
            let remember = try connection.statement("INSERT INTO _sluice_inverse VALUES (?, ?)")
            remember.bind(0, layout.type.name)
            remember.bind(1, name)
            try remember.run()
        }
    }

    /// Not `INSERT OR IGNORE`: a trigger takes the conflict rule of the statement that fires it.
    private func note(_ layout: TableLayout, _ row: String) -> String {
        let (type, key) = (text(layout.type.name), "\(row).\(layout.keyColumn)")
        return """
            INSERT INTO _sluice_link_dirty SELECT \(type), \(key)
            WHERE NOT EXISTS (SELECT 1 FROM _sluice_link_dirty WHERE type = \(type) AND key = \(key))
            """
    }

    private func text(_ name: String) -> String { "'\(name.replacing("'", with: "''"))'" }
}

extension RowStore {
    /// The keys of the objects whose property links to one, in the table's order; one that links twice comes twice.
    /// O(links found), by an index, for the inverses that the replica was opened with; others read the table.
    package func origins(of key: Value, type: Int, property: Int) throws(SluiceError) -> [Value] {
        let layout = layouts[type]
        guard layout.hasTable, case .link(let target) = layout.type.properties[property].type else { return [] }
        guard layout.type.properties[property].collection != .none else {
            let column = TableLayout.quoted(layout.type.properties[property].name)
            let statement = try connection.statement(
                "SELECT \(layout.keyColumn) FROM \(layout.table) WHERE \(column) = ? ORDER BY \(layout.rowid)")
            layout.bind(key, property: property, at: 0, to: statement)
            defer { statement.reset() }
            var keys: [Value] = []
            while try statement.step() { keys.append(layout.readKey(statement)) }
            return keys
        }
        guard let targetLayout = layouts.first(where: { $0.type.name == target }) else { return [] }
        guard links.covers(type, property) else { return try scannedOrigins(of: key, layout, property) }
        if isWriter { try updateLinks() }
        let statement = try connection.statement(
            """
            SELECT o.\(layout.keyColumn), l.count FROM _sluice_link l JOIN \(layout.table) o ON o.\(layout.keyColumn) = l.key
            WHERE l.type = ? AND l.property = ? AND l.target = ? ORDER BY o.\(layout.rowid)
            """)
        statement.bind(0, layout.type.name)
        statement.bind(1, layout.type.properties[property].name)
        targetLayout.bindKey(key, at: 2, to: statement)
        defer { statement.reset() }
        var keys: [Value] = []
        while try statement.step() { keys += repeatElement(layout.readKey(statement), count: max(0, Int(statement.int(1)))) }
        return keys
    }

    private func scannedOrigins(of key: Value, _ layout: TableLayout, _ property: Int) throws(SluiceError) -> [Value] {
        let walk = LinkWalk(schema: schema)
        var keys: [Value] = []
        try visit(RowSelection(type: layout.index, properties: [property], isNested: true)) { owner, row in
            walk.visit(row.value(property) ?? .null, layout.type, property) { _, target, _ in
                if target == key { keys.append(owner) }
            }
            return true
        }
        return keys
    }

    /// Brings `_sluice_link` up to the rows that changed in this transaction.
    func updateLinks() throws(SluiceError) {
        if links.collections.isEmpty { return }
        for layout in layouts where links.collections[layout.index] != nil {
            let changed = try connection.statement("SELECT key FROM _sluice_link_dirty WHERE type = ?")
            changed.bind(0, layout.type.name)
            var keys: [Value] = []
            while try changed.step() { keys.append(layout.readKey(changed)) }
            changed.reset()
            for key in keys { try updateLinks(layout, key: key) }
        }
        try connection.statement("DELETE FROM _sluice_link_dirty").run()
    }

    private func updateLinks(_ layout: TableLayout, key: Value) throws(SluiceError) {
        let forget = try connection.statement("DELETE FROM _sluice_link WHERE type = ? AND key = ?")
        forget.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: forget)
        try forget.run()
        guard let row = try row(type: layout.index, key: key) else { return }
        for index in links.collections[layout.index] ?? [] {
            let property = layout.type.properties[index]
            guard case .link(let target) = property.type, let target = layouts.first(where: { $0.type.name == target }) else { continue }
            let elements: [Value] =
                switch row[index] {
                case .list(let values): values
                case .dictionary(let values): Array(values.values)
                default: []
                }
            var counts: [Value: Int64] = [:]
            for element in elements where !element.isNull { counts[element, default: 0] += 1 }
            for (element, count) in counts {
                let insert = try connection.statement("INSERT INTO _sluice_link VALUES (?, ?, ?, ?, ?)")
                insert.bind(0, layout.type.name)
                insert.bind(1, property.name)
                target.bindKey(element, at: 2, to: insert)
                layout.bindKey(key, at: 3, to: insert)
                insert.bind(4, count)
                try insert.run()
            }
        }
    }
}
