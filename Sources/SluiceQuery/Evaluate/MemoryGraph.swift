package import SluiceCore

/// Rows in memory, in the order in which they were added; links between them are indexed once, at the end.
package struct MemoryGraph: ObjectGraph, Sendable {
    private let schema: Schema
    private var tables: [Table]
    private var links: [Link: [Value]] = [:]
    private var linkCounts: [Target: Int] = [:]

    private struct Table: Sendable {
        var keys: [Value] = []
        var indexes: [Value: Int] = [:]
        var rows: [Row] = []
        var buffer = RowBuffer()
        var references: [RowRef] = []

        mutating func put(_ row: Row, _ key: Value) {
            if let index = indexes[key] {
                rows[index] = row
                references[index] = buffer.append(row)
                return
            }
            indexes[key] = rows.count
            keys.append(key)
            rows.append(row)
            references.append(buffer.append(row))
        }
    }

    private struct Target: Hashable, Sendable {
        var type: String
        var key: Value
    }

    private struct Link: Hashable, Sendable {
        var target: Target
        var source: Int
        var property: Int
    }

    /// - Parameter rows: by class; values by property index. A later row with the same key replaces an earlier one and keeps its place.
    ///   Rows without a key, and those of classes that the schema lacks or embeds, are left out.
    package init(schema: Schema, rows: [(type: String, row: Row)]) {
        self.schema = schema
        tables = schema.types.map { _ in Table() }
        for (name, row) in rows {
            guard let type = schema.index(of: name), let primaryKey = schema.types[type].primaryKey, let key = row[primaryKey] else {
                continue
            }
            tables[type].put(row, key)
        }
        for type in tables.indices {
            for (key, row) in zip(tables[type].keys, tables[type].rows) {
                index(row.values.map { $0 ?? .null }, of: schema.types[type], owner: key, source: type, property: nil)
            }
        }
    }

    private func table(_ type: ObjectType) -> Table? { schema.index(of: type.name).map { tables[$0] } }

    package func row(_ key: Value, of type: ObjectType) -> Row? {
        guard let table = table(type), let index = table.indexes[key] else { return nil }
        return table.rows[index]
    }

    package func keys(of type: ObjectType) -> [Value] { table(type)?.keys ?? [] }

    package func incoming(to key: Value, of type: ObjectType, from source: ObjectType, property: Int) -> [Value] {
        guard let index = schema.index(of: source.name) else { return [] }
        return links[Link(target: Target(type: type.name, key: key), source: index, property: property)] ?? []
    }

    package func incomingCount(to key: Value, of type: ObjectType) -> Int {
        linkCounts[Target(type: type.name, key: key)] ?? 0
    }

    package func withView(_ key: Value, of type: ObjectType, _ body: (RowView) -> Bool) -> Bool? {
        guard let index = schema.index(of: type.name), let row = tables[index].indexes[key] else { return nil }
        return tables[index].buffer.withView(tables[index].references[row], body)
    }

    // MARK: Links

    /// Notes the links of an object. Those of an embedded object count, and belong to no property of a class with rows.
    private mutating func index(_ values: [Value], of type: ObjectType, owner: Value, source: Int, property outer: Int?) {
        for (index, (property, value)) in zip(type.properties, values).enumerated() {
            for element in MemoryGraph.elements(value, property.collection) where !element.isNull {
                switch (property.type, element) {
                case (.link(let target), _): note(Target(type: target, key: element), owner, source, outer == nil ? index : nil)
                case (.mixed, _): noteMixed(element, owner, source, outer == nil ? index : nil)
                case (.embedded(let name), .dictionary(let inner)):
                    guard let embedded = schema[name] else { break }
                    self.index(
                        embedded.properties.map { inner[$0.name] ?? .null }, of: embedded, owner: owner, source: source,
                        property: outer ?? index)
                default: break
                }
            }
        }
    }

    private mutating func noteMixed(_ value: Value, _ owner: Value, _ source: Int, _ property: Int?) {
        switch value {
        case .link(let target, let key): note(Target(type: target, key: key), owner, source, property)
        case .list(let members): for member in members { noteMixed(member, owner, source, property) }
        case .dictionary(let members): for member in members.values { noteMixed(member, owner, source, property) }
        default: break
        }
    }

    private mutating func note(_ target: Target, _ owner: Value, _ source: Int, _ property: Int?) {
        linkCounts[target, default: 0] += 1
        if let property { links[Link(target: target, source: source, property: property), default: []].append(owner) }
    }

    private static func elements(_ value: Value, _ collection: CollectionKind) -> [Value] {
        switch (collection, value) {
        case (.none, _): [value]
        case (_, .list(let elements)): elements
        case (_, .dictionary(let pairs)): Array(pairs.values)
        default: []
        }
    }
}
