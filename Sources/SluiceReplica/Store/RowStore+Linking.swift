package import SluiceCore
import SluiceQuery

/// Links followed backwards, by `LinkIndex`.
extension RowStore {
    /// Whether links of all these properties are followed backwards without reading tables.
    func follows(_ hops: Set<LinkHop>) -> Bool {
        hops.allSatisfy { hop in
            switch hop {
            case .forward(let from, let property, to: _), .backward(to: _, let from, let property): links.covers(from, property)
            }
        }
    }

    /// The keys of a class's objects that link to one by a property: itself, in a collection, in an embedded object, in a mixed value.
    /// O(found), which ends with the first beyond `limit`.
    func owners(_ type: Int, _ property: Int, of target: Int, _ key: Value, limit: Int = .max) throws(SluiceError) -> [Value] {
        let layout = layouts[type]
        guard layout.hasTable, layouts[target].hasTable, links.covers(type, property) else { return [] }
        let statement: Statement
        if links.isSingle(type, property) {
            let column = TableLayout.quoted(layout.type.properties[property].name)
            statement = try connection.statement("SELECT \(layout.keyColumn) FROM \(layout.table) WHERE \(column) = ?")
            layout.bind(key, property: property, at: 0, to: statement)
        } else {
            if isWriter { try updateLinks() }
            statement = try connection.statement("SELECT key FROM _sluice_link WHERE type = ? AND property = ? AND target = ?")
            bindLink(layout, property, target, key, to: statement)
        }
        defer { statement.reset() }
        var found: [Value] = []
        while found.count <= limit, try statement.step() { found.append(layout.readKey(statement)) }
        return found
    }

    /// How many links of a class's property lead to an object.
    func linkCount(_ type: Int, _ property: Int, to target: Int, _ key: Value) throws(SluiceError) -> Int {
        let layout = layouts[type]
        guard layout.hasTable, layouts[target].hasTable, links.covers(type, property) else { return 0 }
        let statement: Statement
        if links.isSingle(type, property) {
            let column = TableLayout.quoted(layout.type.properties[property].name)
            statement = try connection.statement("SELECT count(*) FROM \(layout.table) WHERE \(column) = ?")
            layout.bind(key, property: property, at: 0, to: statement)
        } else {
            if isWriter { try updateLinks() }
            statement = try connection.statement("SELECT total(count) FROM _sluice_link WHERE type = ? AND property = ? AND target = ?")
            bindLink(layout, property, target, key, to: statement)
        }
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    private func bindLink(_ layout: TableLayout, _ property: Int, _ target: Int, _ key: Value, to statement: Statement) {
        statement.bind(0, layout.type.name)
        statement.bind(1, LinkIndex.name(layout.type.properties[property], to: layouts[target].type.name))
        layouts[target].bindKey(key, at: 2, to: statement)
    }

    /// The keys of a class's objects that link to one of the targets by whatever property. O(found), as everything else here.
    /// - Parameters:
    ///   - targets: the keys by type index.
    ///   - limit: the most that are of use.
    /// - Returns: nil when there are more.
    package func linking(_ type: Int, to targets: [Int: Set<Value>], limit: Int = .max) throws(SluiceError) -> Set<Value>? {
        let walk = LinkWalk(schema: schema)
        var found: Set<Value> = []
        for (property, description) in layouts[type].type.properties.enumerated() {
            for (target, keys) in targets where walk.canLink(description, to: schema.types[target].name) {
                for key in keys {
                    found.formUnion(try owners(type, property, of: target, key, limit: limit))
                    if found.count > limit { return nil }
                }
            }
        }
        return found
    }
}
