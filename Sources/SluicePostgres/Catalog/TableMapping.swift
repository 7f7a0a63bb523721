package import SluiceCore

/// The unquoted name of a relation.
package struct SQLName: Hashable, Sendable {
    package let schema: String
    package let name: String
}

/// The table of a class, and the column of each property.
package struct TableMapping: Hashable, Sendable {
    /// The name of the class.
    package let type: String
    package let schema: String
    package let table: String
    /// The columns, by property index.
    package let columns: [String]
    /// The names of the properties, by index.
    let properties: [String]
    /// The partitioning by time; nil for an unpartitioned table.
    package let partitions: TimePartitions?
    /// The facts of the existing columns, by property index. `TableCatalog.found` reads them.
    package internal(set) var facts: [ColumnFacts]
    /// The privileges of the gateway's role.
    package internal(set) var privileges = Set(TablePrivilege.allCases)
    /// The partitions' unique indexes on the key, if each partition has one and the table as a whole has none.
    package internal(set) var partitionKeys: Set<SQLName> = []

    /// Creates a mapping.
    ///
    /// - Parameter columns: Column names by property name. A property without an entry has a column of its own name.
    package init(
        _ type: ObjectType, schema: String = "public", table: String? = nil, columns: [String: String] = [:],
        partitions: TimePartitions? = nil
    ) {
        self.partitions = partitions
        self.type = type.name
        self.schema = schema
        self.table = table ?? type.name
        self.columns = type.properties.map { columns[$0.name] ?? $0.name }
        properties = type.properties.map(\.name)
        facts = type.properties.map { _ in ColumnFacts() }
    }

    /// Returns the mapping with the facts of another one of the same table, whose class may have further properties or lack some.
    package func withFacts(of known: TableMapping) -> TableMapping {
        guard sqlName == known.sqlName else { return self }
        var mapping = self
        for (index, column) in columns.enumerated() {
            if let other = known.columns.firstIndex(of: column) { mapping.facts[index] = known.facts[other] }
        }
        mapping.privileges = known.privileges
        mapping.partitionKeys = known.partitionKeys
        return mapping
    }

    /// `true` if each partition has a unique index on the key, and the table as a whole has none.
    package var hasKeyPerPartition: Bool { !partitionKeys.isEmpty }

    /// `true` if the role of the gateway may lock rows, before it writes them.
    package var isWritable: Bool { privileges.contains(.update) }

    /// The quoted name for statements: `"public"."Todo"`.
    package var sqlName: String { "\(SQLQuote.identifier(schema)).\(SQLQuote.identifier(table))" }

    /// The name for people: `public.Todo`.
    package var displayName: String { "\(schema).\(table)" }

    /// Returns the quoted columns that identify a row: the key, and the time if the table is partitioned by time.
    package func sqlKey(_ type: ObjectType) -> String {
        let key = type.primaryKey.map { [columns[$0]] } ?? []
        let time = partitions.flatMap { type.index(of: $0.property) }.map { [columns[$0]] } ?? []
        return (key + time).map(SQLQuote.identifier).joined(separator: ", ")
    }

    package func sqlColumn(_ property: Int) -> String { SQLQuote.identifier(columns[property]) }
}
