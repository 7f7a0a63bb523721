package import SluiceCore
import SluiceQuery

/// The index that resolves all links backwards.
///
/// A link in a column of its own has an index on that column. Links in collections, embedded objects and mixed values are in blobs.
/// Triggers record the keys of rows whose blobs change. `RowStore.updateLinks` indexes the links of those rows in `_sluice_link` before
/// the transaction commits. The index is derived; the tables of classes are authoritative.
struct LinkIndex: Sendable {
    /// Links in columns of their own: property indices by type.
    private let single: [Int: Set<Int>]
    /// Properties whose blobs may contain links, by type.
    let coded: [Int: Set<Int>]

    static let tables = """
        CREATE TABLE IF NOT EXISTS _sluice_inverse (type TEXT, property TEXT, PRIMARY KEY (type, property)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_link (
            type TEXT, property TEXT, target, key, count INTEGER, PRIMARY KEY (type, property, target, key)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS _sluice_link_origin ON _sluice_link (type, key);
        CREATE TABLE IF NOT EXISTS _sluice_link_dirty (type TEXT, key, PRIMARY KEY (type, key)) WITHOUT ROWID;
        """

    /// `true` if it has all links, `false` if it has none.
    let isComplete: Bool

    /// - Parameter isFitted: `false` for a file whose indexes are unknown. They are created when a file is opened for writing.
    init(_ schema: Schema, isFitted: Bool) {
        isComplete = isFitted
        var (single, coded): ([Int: Set<Int>], [Int: Set<Int>]) = ([:], [:])
        let walk = LinkWalk(schema: schema)
        for (index, type) in schema.types.enumerated() where type.kind == .topLevel && isFitted {
            for (place, property) in type.properties.enumerated() where walk.canLink(property) {
                if case .link = property.type, property.collection == .none {
                    single[index, default: []].insert(place)
                } else {
                    coded[index, default: []].insert(place)
                }
            }
        }
        self.single = single
        self.coded = coded
    }

    /// `true` if the links of a property are found by their targets.
    func covers(_ type: Int, _ property: Int) -> Bool { isSingle(type, property) || coded[type]?.contains(property) ?? false }

    func isSingle(_ type: Int, _ property: Int) -> Bool { single[type]?.contains(property) ?? false }

    /// Returns the name in `_sluice_link` of a property's links to a class. A property with several target classes has one name for each.
    static func name(_ property: Property, to target: String) -> String {
        if case .link = property.type { property.name } else { "\(property.name)→\(target)" }
    }

    /// Fits the index to the classes, after their tables were created.
    func fit(_ store: RowStore) throws(SluiceError) {
        let connection = store.connection
        try connection.execute(LinkIndex.tables)
        for (type, properties) in single {
            let layout = store.layouts[type]
            for property in properties.sorted() {
                let name = layout.type.properties[property].name
                let index = SQLQuote.identifier("_sluice_inverse_\(layout.type.name).\(name)")
                try connection.execute("CREATE INDEX IF NOT EXISTS \(index) ON \(layout.table) (\(SQLQuote.identifier(name)))")
            }
        }
        for type in store.layouts.indices where store.layouts[type].hasTable { try fit(store.layouts[type], connection) }
        try store.updateLinks()
    }

    private func fit(_ layout: TableLayout, _ connection: Connection) throws(SluiceError) {
        let properties = (coded[layout.index] ?? []).sorted().map { layout.type.properties[$0] }
        let wanted = Set(properties.map(\.name))
        let known = try connection.statement("SELECT property FROM _sluice_inverse WHERE type = ?")
        known.bind(0, layout.type.name)
        var before: Set<String> = []
        while try known.step() { before.insert(known.string(0)) }
        known.reset()
        let names = ["insert", "delete", "update"].map { "_sluice_link_\($0)_\(layout.type.name)" }
        let triggers = wanted.isEmpty ? [] : self.triggers(layout, properties, names.map(SQLQuote.identifier))
        // A recreated table has lost its triggers. A class whose links are no longer needed has none.
        let stored = try connection.statement("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name IN (?, ?, ?)")
        for (index, name) in names.enumerated() { stored.bind(index, name) }
        var there: Set<String> = []
        while try stored.step() { there.insert(stored.string(0)) }
        stored.reset()
        if wanted == before && there == Set(triggers) { return }
        for name in names { try connection.execute("DROP TRIGGER IF EXISTS \(SQLQuote.identifier(name))") }
        let forget = try connection.statement("DELETE FROM _sluice_inverse WHERE type = ?")
        forget.bind(0, layout.type.name)
        try forget.run()
        let clear = try connection.statement("DELETE FROM _sluice_link WHERE type = ?")
        clear.bind(0, layout.type.name)
        try clear.run()
        if wanted.isEmpty { return }
        for trigger in triggers { try connection.execute(trigger) }
        try connection.execute(
            """
            INSERT OR IGNORE INTO _sluice_link_dirty SELECT \(SQLQuote.sqliteLiteral(layout.type.name)), t.\(layout.keyColumn)
            FROM \(layout.table) AS t WHERE \(links(properties, "t"));
            """)
        for name in wanted {
            let remember = try connection.statement("INSERT INTO _sluice_inverse VALUES (?, ?)")
            remember.bind(0, layout.type.name)
            remember.bind(1, name)
            try remember.run()
        }
    }

    /// Returns the triggers that record inserted, deleted and updated rows of a class, in the text that SQLite stores.
    private func triggers(_ layout: TableLayout, _ properties: [Property], _ names: [String]) -> [String] {
        let columns = properties.map { SQLQuote.identifier($0.name) }
        let changed = columns.map { "new.\($0) IS NOT old.\($0)" }.joined(separator: " OR ")
        let events = [
            ("INSERT", links(properties, "new"), "new"), ("DELETE", links(properties, "old"), "old"),
            ("UPDATE OF \(columns.joined(separator: ", "))", changed, "new"),
        ]
        return zip(names, events).map { name, event in
            "CREATE TRIGGER \(name) AFTER \(event.0) ON \(layout.table) WHEN \(event.1) BEGIN \(note(layout, event.2)); END"
        }
    }

    /// Not `INSERT OR IGNORE`: a trigger takes the conflict rule of the statement that fires it. The plus removes the column's affinity
    /// from the key. With it, SQLite would convert the stored keys and scan them all.
    private func note(_ layout: TableLayout, _ row: String) -> String {
        let (type, key) = (SQLQuote.sqliteLiteral(layout.type.name), "+\(row).\(layout.keyColumn)")
        return """
            INSERT INTO _sluice_link_dirty SELECT \(type), \(key)
            WHERE NOT EXISTS (SELECT 1 FROM _sluice_link_dirty WHERE type = \(type) AND key = \(key))
            """
    }

    /// Returns the SQL condition that a row may contain links in its blobs, judged by their first bytes.
    private func links(_ properties: [Property], _ row: String) -> String {
        let conditions = properties.map { property in
            let column = "\(row).\(SQLQuote.identifier(property.name))"
            if property.collection != .none { return "length(\(column)) > \(StoredValue.emptyLength)" }
            guard case .mixed = property.type else { return "\(column) IS NOT NULL" }
            return "substr(\(column), 1, 1) IN (\(StoredValue.linkingKinds))"
        }
        return conditions.joined(separator: " OR ")
    }
}

extension RowStore {
    /// Returns the keys of the objects whose property links to an object, in table order. An object that links twice appears twice.
    /// O(links found), by an index. In a read-only file it may scan the whole table.
    package func origins(of key: Value, type: Int, property: Int) throws(SluiceError) -> [Value] {
        let layout = layouts[type]
        guard layout.hasTable, case .link(let name) = layout.type.properties[property].type, let target = schema.index(of: name) else {
            return []
        }
        guard layout.type.properties[property].collection != .none else {
            let column = SQLQuote.identifier(layout.type.properties[property].name)
            let statement = try connection.statement(
                "SELECT \(layout.keyColumn) FROM \(layout.table) WHERE \(column) = ? ORDER BY \(layout.rowid)")
            layout.bind(key, property: property, at: 0, to: statement)
            defer { statement.reset() }
            var keys: [Value] = []
            while try statement.step() { keys.append(layout.readKey(statement)) }
            return keys
        }
        guard links.covers(type, property) else { return try scannedOrigins(of: key, layout, property) }
        if isWriter { try updateLinks() }
        let statement = try connection.statement(
            """
            SELECT o.\(layout.keyColumn), l.count FROM _sluice_link l JOIN \(layout.table) o ON o.\(layout.keyColumn) = l.key
            WHERE l.type = ? AND l.property = ? AND l.target = ? ORDER BY o.\(layout.rowid)
            """)
        statement.bind(0, layout.type.name)
        statement.bind(1, layout.type.properties[property].name)
        layouts[target].bindKey(key, at: 2, to: statement)
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

    /// Updates `_sluice_link` for the rows that changed in this transaction: O(links in those rows).
    func updateLinks() throws(SluiceError) {
        // Edits in memory reach the tables first, so that the triggers record their rows.
        try settle()
        if links.coded.isEmpty { return }
        for layout in layouts where links.coded[layout.index] != nil {
            let changed = try connection.statement("SELECT key FROM _sluice_link_dirty WHERE type = ?")
            changed.bind(0, layout.type.name)
            var keys: [Value] = []
            while try changed.step() { keys.append(layout.readKey(changed)) }
            changed.reset()
            for key in keys { try updateLinks(layout, key: key) }
        }
        try connection.statement("DELETE FROM _sluice_link_dirty").run()
    }

    /// A link of a row, as stored in `_sluice_link`.
    private struct StoredLink: Hashable {
        var property: String
        var type: Int
        var target: Value
    }

    private func updateLinks(_ layout: TableLayout, key: Value) throws(SluiceError) {
        var missing = try storedLinks(layout, key: key)
        let names = linkNames(layout)
        // SQLite would choose the primary key, and scan all links of the class.
        let known = try connection.statement(
            "SELECT property, target, count FROM _sluice_link INDEXED BY _sluice_link_origin WHERE type = ? AND key = ?")
        known.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: known)
        var stale: [StoredLink] = []
        while try known.step() {
            guard let type = names[known.string(0)] else { continue }
            let link = StoredLink(property: known.string(0), type: type, target: layouts[type].readKey(known, 1))
            // Unchanged links need no write; the rest is deleted and inserted with its new count.
            if missing[link] == known.int(2) { missing[link] = nil } else { stale.append(link) }
        }
        known.reset()
        for link in stale {
            let forget = try connection.statement("DELETE FROM _sluice_link WHERE type = ? AND property = ? AND target = ? AND key = ?")
            bind(link, of: layout, key, to: forget)
            try forget.run()
        }
        for (link, count) in missing {
            let insert = try connection.statement("INSERT INTO _sluice_link (type, property, target, key, count) VALUES (?, ?, ?, ?, ?)")
            bind(link, of: layout, key, to: insert)
            insert.bind(4, count)
            try insert.run()
        }
    }

    private func bind(_ link: StoredLink, of layout: TableLayout, _ key: Value, to statement: Statement) {
        statement.bind(0, layout.type.name)
        statement.bind(1, link.property)
        layouts[link.type].bindKey(link.target, at: 2, to: statement)
        layout.bindKey(key, at: 3, to: statement)
    }

    /// Returns the number of each link that an object contains in its blobs.
    private func storedLinks(_ layout: TableLayout, key: Value) throws(SluiceError) -> [StoredLink: Int64] {
        guard let row = try row(type: layout.index, key: key) else { return [:] }
        let walk = LinkWalk(schema: schema)
        var counts: [StoredLink: Int64] = [:]
        for index in links.coded[layout.index] ?? [] {
            let property = layout.type.properties[index]
            walk.visit(row[index] ?? .null, layout.type, index) { name, target, _ in
                guard let type = schema.index(of: name), layouts[type].hasTable else { return }
                counts[StoredLink(property: LinkIndex.name(property, to: name), type: type, target: target), default: 0] += 1
            }
        }
        return counts
    }

    /// Returns the target classes of the property names in `_sluice_link`.
    private func linkNames(_ layout: TableLayout) -> [String: Int] {
        let walk = LinkWalk(schema: schema)
        var names: [String: Int] = [:]
        for index in links.coded[layout.index] ?? [] {
            let property = layout.type.properties[index]
            for target in layouts where target.hasTable && walk.canLink(property, to: target.type.name) {
                names[LinkIndex.name(property, to: target.type.name)] = target.index
            }
        }
        return names
    }
}
