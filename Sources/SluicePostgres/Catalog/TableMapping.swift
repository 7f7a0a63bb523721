package import SluiceCore

/// Where an object type lives: its table, and the column of each property.
package struct TableMapping: Hashable, Sendable {
    /// The object type's name.
    package let type: String
    package let schema: String
    package let table: String
    /// By property index.
    package let columns: [String]
    /// The names of the properties.
    let properties: [String]
    /// Nil for a table in one piece.
    package let partitions: TimePartitions?

    /// - Parameter columns: column names by property name; a property that is not in it has a column of its own name.
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
    }

    /// `"public"."Todo"`, for statements.
    package var sqlName: String { "\(SQLQuote.identifier(schema)).\(SQLQuote.identifier(table))" }

    /// `public.Todo`, for people.
    package var displayName: String { "\(schema).\(table)" }

    /// The columns in property order, quoted and separated by commas.
    package var sqlColumns: String { columns.map(SQLQuote.identifier).joined(separator: ", ") }

    /// What identifies a row: the key's column, and the time's where the table is cut by time.
    package func sqlKey(_ type: ObjectType) -> String {
        let key = type.primaryKey.map { [columns[$0]] } ?? []
        let time = partitions.flatMap { type.index(of: $0.property) }.map { [columns[$0]] } ?? []
        return (key + time).map(SQLQuote.identifier).joined(separator: ", ")
    }

    package func sqlColumn(_ property: Int) -> String { SQLQuote.identifier(columns[property]) }
}
