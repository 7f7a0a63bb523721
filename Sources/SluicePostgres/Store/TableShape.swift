package import SluiceCore

/// A type's table as the stores read and write it: names quoted, columns in the order of the properties.
package struct TableShape: Sendable {
    package let type: ObjectType
    let mapping: TableMapping
    /// Qualified and quoted.
    package let table: String
    package let columns: [String]
    package let forms: [ColumnForm]
    package let key: Int
    /// What identifies a row, quoted: the key's column, and the time's where the table is cut by time.
    let identity: String
    /// Of its rows.
    let bound: SharedRowBound

    /// - Parameters:
    ///   - mapping: Where the table is; one of the type's own name in `public` when nil.
    ///   - bound: of its rows. A larger one does not fit.
    /// - Throws: `tableUnfit` for a type that has no table of its own (an embedded one).
    package init(
        _ type: ObjectType, in schema: Schema, mapping: TableMapping? = nil, bound: SharedRowBound = SharedRowBound()
    ) throws(SluiceError) {
        guard let key = type.primaryKey else { throw SluiceError(.tableUnfit, "Class \(type.name) has no table: it has no primary key.") }
        let mapping = mapping ?? TableMapping(type)
        self.type = type
        self.mapping = mapping
        self.key = key
        self.bound = bound
        table = mapping.sqlName
        identity = mapping.sqlKey(type)
        columns = mapping.columns.map(SQLQuote.identifier)
        forms = type.properties.map { ColumnForm($0, in: schema) }
    }

    var keyColumn: String { columns[key] }

    /// `a, b, c`: what a SELECT of whole rows names.
    var columnList: String { columns.joined(separator: ", ") }

    /// Reads the first columns of a result's row as a row of the type.
    ///
    /// A value that does not fit reads as its property's empty value, so that a write of the other properties can go on.
    func lenientRow(_ row: PostgresRow, _ buffer: inout RowBuffer) -> Row {
        buffer.removeAll()
        buffer.beginRow()
        for (index, form) in forms.enumerated() {
            if let cell = try? unsafe form.decode(row.bytes(index), into: &buffer) {
                buffer.append(cell)
            } else {
                buffer.append(form.property.emptyValue)
            }
        }
        let place = buffer.endRow()
        return buffer.withView(place) { Row($0) }
    }
}
