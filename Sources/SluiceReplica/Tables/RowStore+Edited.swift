package import SluiceCore

/// Collections that the open transaction edits in place, and reads of objects that have some.
extension RowStore {
    /// Writes the collections that were edited in place. Call it before any SQL that reads values of many rows.
    func settle() throws(SluiceError) {
        while let collection = edits.dirty.last { try write(collection) }
    }

    /// Writes one collection. O(its elements).
    func write(_ collection: EditedCollection) throws(SluiceError) {
        _ = try update(type: collection.type, key: collection.key, property: collection.property, collection.normalized)
        edits.settled(collection)
    }

    /// Returns the stored value of one property, or `nil` if the object does not exist.
    func value(type: Int, key: Value, property: Int) throws(SluiceError) -> Value? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        let column = SQLQuote.identifier(layout.type.properties[property].name)
        let statement = try connection.statement("SELECT \(column) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        defer { statement.reset() }
        return try statement.step() ? layout.value(statement, 0, layout.kinds[property]) : nil
    }

    /// Returns the row of an object without the collections that are edited in place, which read as null. Does not copy their elements.
    package func rowWithoutEdits(type: Int, key: Value) throws(SluiceError) -> Row? {
        let edited = edits.of(type, key)
        if edited.isEmpty { return try row(type: type, key: key) }
        return try values(layouts[type], key, without: edited).map { Row($0) }
    }

    /// Returns the row of an object with the collections that are edited in place.
    func row(_ layout: TableLayout, key: Value, with edited: [EditedCollection]) throws(SluiceError) -> Row? {
        guard var values = try values(layout, key, without: edited) else { return nil }
        for collection in edited { values[collection.property] = collection.value }
        return Row(values)
    }

    private func values(_ layout: TableLayout, _ key: Value, without edited: [EditedCollection]) throws(SluiceError) -> [Value?]? {
        let hidden = Set(edited.map(\.property))
        let columns = layout.type.properties.indices.map { index in
            hidden.contains(index) ? "NULL" : SQLQuote.identifier(layout.type.properties[index].name)
        }
        let statement = try connection.statement(
            "SELECT \(columns.joined(separator: ", ")) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return layout.kinds.indices.map { layout.value(statement, $0, layout.kinds[$0]) }
    }
}
