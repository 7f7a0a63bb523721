public import Foundation

/// What type-safe queries pass as an argument for a value: numbers, texts and the like, or an object.
func queryArgument(_ value: some _Persistable) -> Any { value._untyped ?? NSNull() }

// MARK: Order

/// A type whose values have an order in queries.
public protocol _QueryNumeric: _Persistable {}
extension Int: _QueryNumeric {}
extension Int8: _QueryNumeric {}
extension Int16: _QueryNumeric {}
extension Int32: _QueryNumeric {}
extension Int64: _QueryNumeric {}
extension Float: _QueryNumeric {}
extension Double: _QueryNumeric {}
extension Decimal128: _QueryNumeric {}
extension Date: _QueryNumeric {}
extension ObjectId: _QueryNumeric {}
extension UUID: _QueryNumeric {}
extension AnyRealmValue: _QueryNumeric {}

extension Query where T: _Persistable {
    /// Whether the property has the value.
    public static func == (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("==", .constant(queryArgument(rhs))) }
    /// Whether the property has another value.
    public static func != (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("!=", .constant(queryArgument(rhs))) }
    /// Whether two properties have the same value.
    public static func == <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        lhs.comparison("==", rhs.node)
    }
    /// Whether two properties have different values.
    public static func != <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        lhs.comparison("!=", rhs.node)
    }

    /// Whether the property has one of the values.
    public func `in`<U: Sequence>(_ values: U) -> Query<Bool> where U.Element == T {
        comparison("IN", .constant(values.map { queryArgument($0) }))
    }
}

extension Query where T: _Persistable, T.PersistedType: _QueryNumeric {
    /// Whether the value is greater.
    public static func > (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison(">", .constant(queryArgument(rhs))) }
    /// Whether the value is greater or equal.
    public static func >= (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison(">=", .constant(queryArgument(rhs))) }
    /// Whether the value is less.
    public static func < (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("<", .constant(queryArgument(rhs))) }
    /// Whether the value is less or equal.
    public static func <= (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("<=", .constant(queryArgument(rhs))) }
    /// Whether the value is greater than that of another property.
    public static func > <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison(">", rhs.node)
    }
    /// Whether the value is that of another property or greater.
    public static func >= <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison(">=", rhs.node)
    }
    /// Whether the value is less than that of another property.
    public static func < <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison("<", rhs.node)
    }
    /// Whether the value is that of another property or less.
    public static func <= <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison("<=", rhs.node)
    }

    /// Whether the value lies in the range, both ends included.
    public func contains(_ range: ClosedRange<T>) -> Query<Bool> where T: Comparable {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// Whether the value lies in the range, the upper end left out.
    public func contains(_ range: Range<T>) -> Query<Bool> where T: Comparable {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// Whether the value lies in the range, both ends included; null does not.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: ClosedRange<W>) -> Query<Bool> where T == W? {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// Whether the value lies in the range, the upper end left out; null does not.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: Range<W>) -> Query<Bool> where T == W? {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// The least value of the property over the collection that the path goes through.
    public var min: Query { aggregate("@min") }
    /// The greatest value of the property over the collection that the path goes through.
    public var max: Query { aggregate("@max") }
    /// The average of the property over the collection that the path goes through.
    public var avg: Query { aggregate("@avg") }
    /// The sum of the property over the collection that the path goes through.
    public var sum: Query { aggregate("@sum") }
}

// MARK: Conditions

extension Query where T == Bool {
    /// Both.
    public static func && (lhs: Query, rhs: Query) -> Query { Query(.both(lhs.node, "&&", rhs.node)) }
    /// Either.
    public static func || (lhs: Query, rhs: Query) -> Query { Query(.both(lhs.node, "||", rhs.node)) }
    /// Not.
    public static prefix func ! (query: Query) -> Query { Query(.not(query.node)) }

    /// How many objects of a collection satisfy a condition, all of whose paths begin with the collection.
    ///
    /// ```swift
    /// people.where { ($0.dogs.age > 3 && $0.dogs.name == "Rex").count > 0 }
    /// ```
    public var count: Query<Int> { Query<Int>(.subqueryCount(node)) }
}

// MARK: Places

extension Query where T: EmbeddedObject {
    /// Whether the place lies in a shape.
    public func geoWithin(_ shape: some RealmGeoSpatial) -> Query<Bool> { comparison("IN", .constant(shape)) }
}

extension Query {
    /// Whether the place lies in a shape.
    public func geoWithin<E: EmbeddedObject>(_ shape: some RealmGeoSpatial) -> Query<Bool> where T == E? {
        comparison("IN", .constant(shape))
    }
}
