public import Foundation

/// Returns a value as an argument of a type-safe query: a number, text or other value, or an object; `NSNull` for nil.
func queryArgument(_ value: some _Persistable) -> Any { value._untyped ?? NSNull() }

// MARK: Order

/// A type whose values are ordered in queries.
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
    /// `true` if the property has the value.
    public static func == (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("==", .constant(queryArgument(rhs))) }
    /// `true` if the property has another value.
    public static func != (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("!=", .constant(queryArgument(rhs))) }
    /// `true` if two properties have equal values.
    public static func == <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        lhs.comparison("==", rhs.node)
    }
    /// `true` if two properties have different values.
    public static func != <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        lhs.comparison("!=", rhs.node)
    }

    /// `true` if the property has one of the values.
    public func `in`<U: Sequence>(_ values: U) -> Query<Bool> where U.Element == T {
        comparison("IN", .constant(values.map { queryArgument($0) }))
    }
}

extension Query where T: _Persistable, T.PersistedType: _QueryNumeric {
    /// `true` if the value is greater.
    public static func > (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison(">", .constant(queryArgument(rhs))) }
    /// `true` if the value is greater or equal.
    public static func >= (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison(">=", .constant(queryArgument(rhs))) }
    /// `true` if the value is less.
    public static func < (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("<", .constant(queryArgument(rhs))) }
    /// `true` if the value is less or equal.
    public static func <= (lhs: Query, rhs: T) -> Query<Bool> { lhs.comparison("<=", .constant(queryArgument(rhs))) }
    /// `true` if the value is greater than that of another property.
    public static func > <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison(">", rhs.node)
    }
    /// `true` if the value is greater than or equal to that of another property.
    public static func >= <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison(">=", rhs.node)
    }
    /// `true` if the value is less than that of another property.
    public static func < <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison("<", rhs.node)
    }
    /// `true` if the value is less than or equal to that of another property.
    public static func <= <U: _Persistable>(lhs: Query, rhs: Query<U>) -> Query<Bool> where U.PersistedType: _QueryNumeric {
        lhs.comparison("<=", rhs.node)
    }

    /// `true` if the value is in the range, both ends included.
    public func contains(_ range: ClosedRange<T>) -> Query<Bool> where T: Comparable {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if the value is in the range, without the upper end.
    public func contains(_ range: Range<T>) -> Query<Bool> where T: Comparable {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// `true` if the value is in the range, both ends included; `false` for null.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: ClosedRange<W>) -> Query<Bool> where T == W? {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if the value is in the range, without the upper end; `false` for null.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: Range<W>) -> Query<Bool> where T == W? {
        self.range(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// The minimum of the property over the path's collection.
    public var min: Query { aggregate("@min") }
    /// The maximum of the property over the path's collection.
    public var max: Query { aggregate("@max") }
    /// The average of the property over the path's collection.
    public var avg: Query { aggregate("@avg") }
    /// The sum of the property over the path's collection.
    public var sum: Query { aggregate("@sum") }
}

// MARK: Conditions

extension Query where T == Bool {
    /// `true` if both conditions hold.
    public static func && (lhs: Query, rhs: Query) -> Query { Query(.both(lhs.node, "&&", rhs.node)) }
    /// `true` if at least one condition holds.
    public static func || (lhs: Query, rhs: Query) -> Query { Query(.both(lhs.node, "||", rhs.node)) }
    /// `true` if the condition does not hold.
    public static prefix func ! (query: Query) -> Query { Query(.not(query.node)) }

    /// The number of objects of a collection that satisfy a condition. All paths of the condition must begin with the collection.
    ///
    /// ```swift
    /// people.where { ($0.dogs.age > 3 && $0.dogs.name == "Rex").count > 0 }
    /// ```
    public var count: Query<Int> { Query<Int>(.subqueryCount(node)) }
}

// MARK: Places

extension Query where T: EmbeddedObject {
    /// `true` if the place is in a shape.
    public func geoWithin(_ shape: some RealmGeoSpatial) -> Query<Bool> { comparison("IN", .constant(shape)) }
}

extension Query {
    /// `true` if the place is in a shape.
    public func geoWithin<E: EmbeddedObject>(_ shape: some RealmGeoSpatial) -> Query<Bool> where T == E? {
        comparison("IN", .constant(shape))
    }
}
