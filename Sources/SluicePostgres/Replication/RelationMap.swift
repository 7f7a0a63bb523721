import SluiceCore

/// How the columns of a table, as a Relation message lists them, become the properties of a type.
struct RelationMap: Sendable {
    /// Index into `Schema.types`; -1 for a table that no type has.
    var type: Int32 = -1
    var name = ""
    /// Property index by column; -1 for a column that no property has.
    var properties: [Int32] = []
    /// The simple form by column, for the quick way.
    var codes: [ColumnForm.Code] = []
    /// By property index.
    var forms: [ColumnForm] = []
    /// Columns that are not in the table, as property indices, with their cells.
    var missing: [(Int32, CellTag)] = []
    /// The column and the property of the primary key; -1 when the table lacks it.
    var keyColumn = -1
    var keyProperty = 0
    /// Of the type's rows.
    let bound: SharedRowBound

    var propertyCount: Int { forms.count }

    /// A table that no type has: its changes are only counted.
    init(unmapped name: String) {
        self.name = name
        bound = SharedRowBound()
    }

    init(_ type: Int32, _ object: ObjectType, _ mapping: TableMapping, forms: [ColumnForm], columns: [String], bound: SharedRowBound) {
        self.type = type
        self.bound = bound
        name = mapping.displayName
        self.forms = forms
        keyProperty = object.primaryKey ?? 0
        let byName = Dictionary(mapping.columns.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        for column in columns {
            let property = byName[column]
            properties.append(Int32(property ?? -1))
            codes.append(property.map { forms[$0].code } ?? .string)
        }
        keyColumn = columns.firstIndex(of: mapping.columns[keyProperty]) ?? -1
        for property in forms.indices where !properties.contains(Int32(property)) {
            // A column that the table got later: null where the property has it, else not there at all.
            missing.append((Int32(property), forms[property].property.isRequired ? .absent : .null))
        }
    }
}
