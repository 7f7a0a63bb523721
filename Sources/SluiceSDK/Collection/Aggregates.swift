public import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica
import SluiceValues

/// A type whose values have a minimum and a maximum.
public protocol MinMaxType: _Persistable {}
/// A type whose values can be summed.
public protocol AddableType: _Persistable {}

extension Int: MinMaxType, AddableType {}
extension Int8: MinMaxType, AddableType {}
extension Int16: MinMaxType, AddableType {}
extension Int32: MinMaxType, AddableType {}
extension Int64: MinMaxType, AddableType {}
extension Float: MinMaxType, AddableType {}
extension Double: MinMaxType, AddableType {}
extension Decimal128: MinMaxType, AddableType {}
extension AnyRealmValue: MinMaxType, AddableType {}
extension Date: MinMaxType {}

/// The minimum, maximum, sum and average of a collection's elements, or of one of their properties.
/// Nulls are ignored. With no values, the sum is 0 and the other results are nil.
enum CollectionAggregate {
    /// Computes an aggregate. Traps if the property does not exist or is not a number.
    /// - Parameter property: The property's name. If nil, the elements themselves are aggregated.
    static func of<C: RealmCollection>(_ collection: C, _ function: Aggregate, _ property: String?) -> Value {
        if let results = collection._managedResults { return results.storage.aggregate(function, property) }
        guard let property else {
            var aggregation = Aggregation(function, of: C.Element._kind.type)
            for element in collection { aggregation.add(element._stored(in: ObjectBase()).value) }
            return aggregation.result
        }
        guard let objectClass = C.Element._kind.target, let slot = ModelSchema.of(objectClass).slot(named: property) else {
            throwRealmException("Property '\(property)' not found in object of type '\(C.Element.self)'")
        }
        check(function, ModelSchema.of(objectClass).properties[slot])
        var aggregation = Aggregation(function, of: ModelSchema.of(objectClass).properties[slot].kind.type)
        for case let object as ObjectBase in collection.map({ $0 as Any }) {
            aggregation.add(object.model.take(object, slot: slot, owner: object).value.value)
        }
        return aggregation.result
    }

    /// Traps if the function cannot be applied to the property. Dates support only `min` and `max`.
    static func check(_ function: Aggregate, _ property: ModelSchema.Property) {
        switch property.kind.type {
        case .int, .float, .double, .decimal, .mixed: return
        case .timestamp where function == .min || function == .max: return
        default:
            throwRealmException("Cannot calculate '\(function.rawValue)' of property '\(property.name)': it is no number")
        }
    }

    /// Converts the value to the requested type; nil for null.
    /// Integers are truncated toward zero and clamped to 64 bits. Any other value that does not fit traps.
    static func converted<T: _Persistable>(_ value: Value, _ type: T.Type) -> T? {
        if value.isNull { return nil }
        if case .mixed = T._kind.type { return T._make(from: _StoredValue(value), of: ObjectBase(), slot: 0) }
        if let converted = value.plain.flatMap({ T._coerce($0) }) { return converted }
        for other in others(value) {
            if let converted = T._coerce(other) { return converted }
        }
        // The result depends on data, so it must not trap: convert it as a property of the type does.
        if case .int = T._kind.type, let whole = cut(value) { return T._make(from: .int(whole), of: ObjectBase(), slot: 0) }
        throwRealmException("The result \(value) does not fit into \(T.self).")
    }

    /// The number truncated to 64 bits; values out of range become the nearest limit, NaN becomes 0.
    private static func cut(_ value: Value) -> Int64? {
        switch value {
        case .int(let value): value
        case .double(let value): cut(value)
        case .float(let value): cut(Double(value))
        case .decimal(let value): cut(value.double)
        default: nil
        }
    }

    private static func cut(_ value: Double) -> Int64 {
        if value.isNaN { return 0 }
        return Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }

    /// The number in other types: as a decimal or double, and truncated to an integer if it fits.
    private static func others(_ value: Value) -> [Any] {
        switch value {
        case .int(let value): [Decimal128(.init(value))]
        case .double(let value): [Decimal128(.init(double: value))] + whole(value)
        case .float(let value): [Decimal128(.init(double: Double(value)))] + whole(Double(value))
        case .decimal(let value): [value.double] + whole(value.double)
        default: []
        }
    }

    private static func whole(_ value: Double) -> [Any] { Int64(exactly: value.rounded(.towardZero)).map { [$0] } ?? [] }
}

extension RealmCollection {
    /// The minimum of a property's values; nil if there are none. Traps if the property is not a number or date.
    public func min<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        CollectionAggregate.converted(CollectionAggregate.of(self, .min, property), T.self)
    }
    /// The maximum of a property's values; nil if there are none. Traps if the property is not a number or date.
    public func max<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        CollectionAggregate.converted(CollectionAggregate.of(self, .max, property), T.self)
    }
    /// The sum of a property's values; 0 if there are none. Traps if the property is not a number.
    public func sum<T: _Persistable>(ofProperty property: String) -> T where T.PersistedType: AddableType {
        CollectionAggregate.converted(CollectionAggregate.of(self, .sum, property), T.self) ?? T._default()
    }
    /// The average of a property's values; nil if there are none. Traps if the property is not a number.
    public func average<T: _Persistable>(ofProperty property: String) -> T? where T.PersistedType: AddableType {
        CollectionAggregate.converted(CollectionAggregate.of(self, .average, property), T.self)
    }

    /// The minimum of a property's values; nil if there are none.
    public func min<T: _Persistable>(of keyPath: KeyPath<Element, T>) -> T? where Element: ObjectBase, T.PersistedType: MinMaxType {
        min(ofProperty: _name(for: keyPath))
    }
    /// The maximum of a property's values; nil if there are none.
    public func max<T: _Persistable>(of keyPath: KeyPath<Element, T>) -> T? where Element: ObjectBase, T.PersistedType: MinMaxType {
        max(ofProperty: _name(for: keyPath))
    }
    /// The sum of a property's values; 0 if there are none.
    public func sum<T: _Persistable>(of keyPath: KeyPath<Element, T>) -> T where Element: ObjectBase, T.PersistedType: AddableType {
        sum(ofProperty: _name(for: keyPath))
    }
    /// The average of a property's values in the property's type, with integers truncated; nil if there are none.
    public func average<T: _Persistable>(of keyPath: KeyPath<Element, T>) -> T?
    where Element: ObjectBase, T.PersistedType: AddableType {
        average(ofProperty: _name(for: keyPath))
    }
    /// The average of a property's values; nil if there are none.
    @_disfavoredOverload public func average<T: _Persistable, R: _Persistable>(of keyPath: KeyPath<Element, T>) -> R?
    where Element: ObjectBase, T.PersistedType: AddableType, R.PersistedType: AddableType {
        average(ofProperty: _name(for: keyPath))
    }
}

// For `Comparable` elements the compiler prefers the standard library's `min` and `max`, which return the same values.
extension RealmCollection where Element.PersistedType: MinMaxType {
    /// The smallest element; nil if there is none.
    @_disfavoredOverload public func min() -> Element? {
        CollectionAggregate.converted(CollectionAggregate.of(self, .min, nil), Element.self)
    }
    /// The largest element; nil if there is none.
    @_disfavoredOverload public func max() -> Element? {
        CollectionAggregate.converted(CollectionAggregate.of(self, .max, nil), Element.self)
    }
}

extension RealmCollection where Element.PersistedType: AddableType {
    /// The sum of the elements; 0 if there are none.
    public func sum() -> Element {
        CollectionAggregate.converted(CollectionAggregate.of(self, .sum, nil), Element.self) ?? Element._default()
    }
    /// The average of the elements; nil if there are none.
    public func average<T: _Persistable>() -> T? where T.PersistedType: AddableType {
        CollectionAggregate.converted(CollectionAggregate.of(self, .average, nil), T.self)
    }
}

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
