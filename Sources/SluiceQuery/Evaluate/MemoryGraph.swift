package import SluiceCore

/// Rows in memory, in insertion order. Links between them are indexed once, at the end of `init`.
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

    /// - Parameter rows: The rows by class, with values by property index. A later row with the same key replaces an earlier one at its
    ///   place. Rows without a key, and those of embedded or unknown classes, are ignored.
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
                index(row.values.map { $0 ?? .null }, of: schema.types[type], owner: key, source: type)
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

    /// Indexes the links of an object. A link of an embedded object counts, but belongs to no property of a class with rows.
    private mutating func index(_ values: [Value], of type: ObjectType, owner: Value, source: Int) {
        LinkWalk(schema: schema).visit(values, of: type) { target, key, property in
            let target = Target(type: target, key: key)
            linkCounts[target, default: 0] += 1
            if let property { links[Link(target: target, source: source, property: property), default: []].append(owner) }
        }
    }
}
