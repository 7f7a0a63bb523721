package import SluiceCore

/// A type's table as the stores read and write it: names quoted, columns in the order of the properties.
package struct TableShape: Sendable {
    package let type: ObjectType
    /// Qualified and quoted.
    package let table: String
    package let columns: [String]
    package let forms: [ColumnForm]
    package let key: Int

    /// - Parameters:
    ///   - table: Its name, without quotes.
    ///   - columns: Names without quotes, in the order of the properties; the properties' own names when nil.
    /// - Throws: `tableUnfit` for a type that has no table of its own (an embedded one).
    package init(
        _ type: ObjectType, in schema: Schema, namespace: String = "public", table: String? = nil, columns: [String]? = nil
    ) throws(SluiceError) {
        guard let key = type.primaryKey else { throw SluiceError(.tableUnfit, "Class \(type.name) has no table: it has no primary key.") }
        self.type = type
        self.key = key
        self.table = Self.quoted(namespace) + "." + Self.quoted(table ?? type.name)
        self.columns = (columns ?? type.properties.map(\.name)).map(Self.quoted)
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

    private static func quoted(_ name: String) -> String {
        "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
}
