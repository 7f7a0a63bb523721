import SluiceCore

/// The mapping from the columns of a table, as a Relation message lists them, to the properties of a class.
struct RelationMap: Sendable {
    /// The index into `Schema.types`; -1 for a table without a class.
    var type: Int32 = -1
    var name = ""
    /// The property index of each column; -1 for a column without a property.
    var properties: [Int32] = []
    /// The simple form of each column, for the fast path.
    var codes: [ColumnForm.Code] = []
    /// The form of each property.
    var forms: [ColumnForm] = []
    /// Properties without a column in the table, by index, and the cells that stand in for them.
    var missing: [(Int32, CellTag)] = []
    /// The column and the property of the primary key. The column is -1 if the table lacks it.
    var keyColumn = -1
    var keyProperty = 0
    /// The columns that generated columns without a value in the WAL depend on: for each column of the relation its index in
    /// `GeneratedColumns.inputs`, or -1. Empty for a relation without such columns.
    var inputs: [Int] = []
    /// The number of `GeneratedColumns.inputs`.
    var inputCount = 0
    /// The relation's number in `ComputedRelations`; -1 for a relation without columns to compute.
    var computed = -1
    /// The bound of the class's rows.
    let bound: SharedRowBound

    var propertyCount: Int { forms.count }

    /// Creates the map of a table without a class, whose changes are only counted.
    init(unmapped name: String) {
        self.name = name
        bound = SharedRowBound()
    }

    init(
        _ type: Int32, _ object: ObjectType, _ mapping: TableMapping, forms: [ColumnForm], columns: [String], bound: SharedRowBound,
        computed: ComputedRelations
    ) {
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
            // A column that the table received later: null if the property allows it, else absent.
            missing.append((Int32(property), forms[property].property.isRequired ? .absent : .null))
        }
        let generated = GeneratedColumns(mapping, published: columns)
        guard !generated.properties.isEmpty else { return }
        inputCount = generated.inputs.count
        inputs = columns.map { column in generated.inputs.firstIndex { $0.column == column } ?? -1 }
        self.computed = computed.number(
            ComputedRelation(type: type, keyProperty: keyProperty, forms: forms, columns: generated, bound: bound))
    }
}
