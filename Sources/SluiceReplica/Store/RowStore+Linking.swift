package import SluiceCore
import SluiceQuery

extension RowStore {
    /// More targets are looked for by going through the table once.
    private static let askedFor = 16

    /// The keys of a class's objects that link to one of the targets, by whatever property: of their own, in a collection, in an embedded
    /// object, in a mixed value. Others may be among them where a blob holds the bytes of a target's key.
    ///
    /// It costs a search of the table by SQLite, and with many targets reading all links of it; of a property that has an index for
    /// inverse links, only what is found.
    /// - Parameter targets: the keys by type index.
    package func linking(_ type: Int, to targets: [Int: Set<Value>]) throws(SluiceError) -> Set<Value> {
        let layout = layouts[type]
        if !layout.hasTable { return [] }
        if targets.values.reduce(0, { $0 + $1.count }) > RowStore.askedFor { return try walked(layout, targets) }
        var found: Set<Value> = []
        for (index, property) in layout.type.properties.enumerated() {
            if case .link(let name) = property.type, property.collection == .none, layout.kinds[index] != .coded {
                guard let target = schema.index(of: name), let keys = targets[target], !keys.isEmpty else { continue }
                let column = TableLayout.quoted(property.name)
                let marks = repeatElement("?", count: keys.count).joined(separator: ", ")
                try collect("\(column) IN (\(marks))", layout, &found) { statement in
                    for (place, key) in keys.enumerated() { layout.bind(key, property: index, at: place, to: statement) }
                }
            } else if LinkWalk(schema: schema).canLink(property) {
                let column = TableLayout.quoted(property.name)
                let keys = keys(property, targets).map { StoredValue.encode($0) }
                if keys.isEmpty { continue }
                let condition = repeatElement("instr(\(column), ?)", count: keys.count).joined(separator: " OR ")
                try collect(condition, layout, &found) { statement in
                    for (place, key) in keys.enumerated() { statement.bind(place, key) }
                }
            }
        }
        return found
    }

    /// Those of the targets that a property can lead to.
    private func keys(_ property: Property, _ targets: [Int: Set<Value>]) -> Set<Value> {
        guard case .link(let name) = property.type else { return targets.values.reduce(into: []) { $0.formUnion($1) } }
        return schema.index(of: name).flatMap { targets[$0] } ?? []
    }

    private func collect(
        _ condition: String, _ layout: TableLayout, _ found: inout Set<Value>, _ bind: (Statement) -> Void
    ) throws(SluiceError) {
        let statement = try connection.statement("SELECT \(layout.keyColumn) FROM \(layout.table) WHERE \(condition)")
        bind(statement)
        defer { statement.reset() }
        while try statement.step() { found.insert(layout.readKey(statement)) }
    }

    private func walked(_ layout: TableLayout, _ targets: [Int: Set<Value>]) throws(SluiceError) -> Set<Value> {
        let walk = LinkWalk(schema: schema)
        let properties = layout.type.properties.indices.filter { walk.canLink(layout.type.properties[$0]) }
        var byName: [String: Set<Value>] = [:]
        for (type, keys) in targets { byName[schema.types[type].name] = keys }
        var found: Set<Value> = []
        if properties.isEmpty { return found }
        try visit(RowSelection(type: layout.index, properties: properties, isNested: true)) { owner, row in
            var links = false
            for property in properties where !links {
                walk.visit(row.value(property) ?? .null, layout.type, property) { name, key, _ in
                    links = links || byName[name]?.contains(key) == true
                }
            }
            if links { found.insert(owner) }
            return true
        }
        return found
    }
}
