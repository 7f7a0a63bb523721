import SluiceCore
import SluiceQuery
import SluiceReplica

extension ResultsStorage {
    /// Computes an aggregate of the current elements. Traps if the property does not exist or is not a number.
    /// - Parameter property: The property's name. If nil, the elements themselves are aggregated.
    func aggregate(_ function: Aggregate, _ property: String?) -> Value {
        let schema: ModelSchema
        switch kind {
        case .values(let type):
            var aggregation = Aggregation(function, of: type)
            let elements = current()
            for key in elements.keys { aggregation.add(elements.value(key)) }
            return aggregation.result
        case .objects(let type): schema = core.classes.schema(type)
        case .embedded(let model): schema = model
        }
        guard let property, let slot = schema.slot(named: property), slot < schema.storedCount else {
            throwRealmException("Property '\(property ?? "self")' not found in object of type '\(schema.name)'")
        }
        CollectionAggregate.check(function, schema.properties[slot])
        // SQLite computes aggregates of a pure query; other elements are aggregated one by one.
        if case .table = origin, rest.isEmpty {
            return core.reading.attempt(.null) { store throws(SluiceError) in try query.aggregate(function, property: slot, on: store) }
        }
        var aggregation = Aggregation(function, of: schema.properties[slot].kind.type)
        let elements = current()
        for key in elements.keys { aggregation.add(value(slot, key, elements, schema)) }
        return aggregation.result
    }

    /// The value of a property of an element.
    private func value(_ slot: Int, _ key: Value, _ elements: Elements, _ schema: ModelSchema) -> Value {
        if case .objects(let type) = kind { return core.reading.row(type, key)?[slot] ?? .null }
        guard case .dictionary(let fields) = elements.value(key) else { return .null }
        return fields[schema.properties[slot].column] ?? .null
    }
}
