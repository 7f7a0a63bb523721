package import SluiceCore
import SluiceQuery

/// Backward links, by `LinkIndex`.
extension RowStore {
    /// `true` if the links of all these properties can be followed backwards without a table scan.
    func follows(_ hops: Set<LinkHop>) -> Bool {
        hops.allSatisfy { hop in
            switch hop {
            case .forward(let from, let property, to: _), .backward(to: _, let from, let property): links.covers(from, property)
            }
        }
    }

    /// Returns the keys of a class's objects that link to an object by a property: directly, or in a collection, an embedded object or a
    /// mixed value. O(found). Stops after the first one beyond `limit`.
    func owners(_ type: Int, _ property: Int, of target: Int, _ key: Value, limit: Int = .max) throws(SluiceError) -> [Value] {
        let layout = layouts[type]
        let found = try linking(type, property, to: target, key, selecting: (layout.keyColumn, "key"))
        guard let statement = found else { return [] }
        defer { statement.reset() }
        var keys: [Value] = []
        while keys.count <= limit, try statement.step() { keys.append(layout.readKey(statement)) }
        return keys
    }

    /// Returns the number of links from a class's property to an object.
    func linkCount(_ type: Int, _ property: Int, to target: Int, _ key: Value) throws(SluiceError) -> Int {
        let found = try linking(type, property, to: target, key, selecting: ("count(*)", "total(count)"))
        guard let statement = found else { return 0 }
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    /// Returns the statement that finds the links of a class's property to an object. It reads the class's table if each object has at
    /// most one link, otherwise the link index. `nil` if the property's links are not indexed.
    /// - Parameter selecting: the expressions to read from the table, and from the index.
    private func linking(
        _ type: Int, _ property: Int, to target: Int, _ key: Value, selecting: (table: String, index: String)
    ) throws(SluiceError) -> Statement? {
        let layout = layouts[type]
        guard layout.hasTable, layouts[target].hasTable, links.covers(type, property) else { return nil }
        if links.isSingle(type, property) {
            let column = SQLQuote.identifier(layout.type.properties[property].name)
            let statement = try connection.statement("SELECT \(selecting.table) FROM \(layout.table) WHERE \(column) = ?")
            layout.bind(key, property: property, at: 0, to: statement)
            return statement
        }
        if isWriter { try updateLinks() }
        let statement = try connection.statement(
            "SELECT \(selecting.index) FROM _sluice_link WHERE type = ? AND property = ? AND target = ?")
        bindLink(layout, property, target, key, to: statement)
        return statement
    }

    private func bindLink(_ layout: TableLayout, _ property: Int, _ target: Int, _ key: Value, to statement: Statement) {
        statement.bind(0, layout.type.name)
        statement.bind(1, LinkIndex.name(layout.type.properties[property], to: layouts[target].type.name))
        layouts[target].bindKey(key, at: 2, to: statement)
    }

    /// Returns the keys of a class's objects that link to one of the targets by any property. O(found).
    /// - Parameters:
    ///   - targets: the keys by type index.
    ///   - limit: the maximum number of keys.
    /// - Returns: `nil` if there are more.
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
