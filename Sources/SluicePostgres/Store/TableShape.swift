package import SluiceCore

/// A class's table as the stores read and write it. Names are quoted, and columns are in the order of the properties.
package struct TableShape: Sendable {
    package let type: ObjectType
    package let mapping: TableMapping
    /// The qualified and quoted name.
    package let table: String
    package let columns: [String]
    /// The columns as conditions compare them (`ColumnForm.compared`).
    package let compared: [String]
    package let forms: [ColumnForm]
    package let key: Int
    /// The quoted columns that identify a row: the key, and the time if the table is partitioned by time.
    let identity: String
    /// The bound of the rows.
    let bound: SharedRowBound

    /// - Parameters:
    ///   - mapping: The place of the table; nil for a table of the class's name in `public`.
    ///   - bound: The bound of the rows. A larger row does not fit.
    /// - Throws: `tableUnfit` for a class without a primary key, such as an embedded one.
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
        forms = zip(type.properties, mapping.facts).map { ColumnForm($0, in: schema, $1) }
        compared = zip(forms, columns).map { $0.compared($1) }
    }

    var keyColumn: String { columns[key] }

    /// The key as statements look up rows that may not exist (`ColumnForm.lookedUp`).
    var lookupKey: String { forms[key].lookedUp(keyColumn) }

    /// The indices of the columns that are written.
    var written: [Int] { columns.indices.filter { !forms[$0].isGenerated } }

    /// The columns of an insertion: `a, b, c`.
    var writtenList: String { written.map { columns[$0] }.joined(separator: ", ") }

    /// The columns of a SELECT of whole rows: `a, b, c`.
    var columnList: String { columns.joined(separator: ", ") }

    /// Returns the first columns of a result's row as a row of the class.
    ///
    /// A value that does not fit reads as its property's empty value, so that the other properties can still be written.
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
