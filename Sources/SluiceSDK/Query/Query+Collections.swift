/// Operations shared by lists, sets and maps in queries.
extension Query {
    fileprivate func contains(constant value: Any) -> Query<Bool> { Query<Bool>(.comparison(.constant(value), "IN", node)) }

    /// `true` if all elements are between two values, compared by minimum and maximum.
    fileprivate func allIn(_ low: Any, _ high: Any, isClosed: Bool) -> Query<Bool> {
        let (least, greatest): (Query<Any>, Query<Any>) = (aggregate("@min"), aggregate("@max"))
        return Query<Bool>(
            .both(
                .comparison(least.node, ">=", .constant(low)), "&&",
                .comparison(greatest.node, isClosed ? "<=" : "<", .constant(high))))
    }
}

// MARK: Lists and sets

extension Query where T: RealmCollection {
    /// `true` if the collection contains the value.
    public func contains(_ value: T.Element) -> Query<Bool> { contains(constant: queryArgument(value)) }

    /// `true` if the collection contains one of the values.
    public func containsAny<U: Sequence>(in values: U) -> Query<Bool> where U.Element == T.Element {
        comparison("IN", .constant(values.map { queryArgument($0) }))
    }

    /// `true` if an element has the value.
    public static func == (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison("==", .constant(queryArgument(rhs))) }
    /// `true` if an element has another value.
    public static func != (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison("!=", .constant(queryArgument(rhs))) }

    /// The number of elements.
    public var count: Query<Int> { aggregate("@count") }
}

extension Query where T: RealmCollection, T.Element.PersistedType: _QueryNumeric {
    /// `true` if an element is greater.
    public static func > (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison(">", .constant(queryArgument(rhs))) }
    /// `true` if an element is greater or equal.
    public static func >= (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison(">=", .constant(queryArgument(rhs))) }
    /// `true` if an element is less.
    public static func < (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison("<", .constant(queryArgument(rhs))) }
    /// `true` if an element is less or equal.
    public static func <= (lhs: Query, rhs: T.Element) -> Query<Bool> { lhs.comparison("<=", .constant(queryArgument(rhs))) }

    /// `true` if all elements are in the range, both ends included.
    public func contains(_ range: ClosedRange<T.Element>) -> Query<Bool> where T.Element: Comparable {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if all elements are in the range, without the upper end.
    public func contains(_ range: Range<T.Element>) -> Query<Bool> where T.Element: Comparable {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// `true` if all elements except nil are in the range, both ends included.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: ClosedRange<W>) -> Query<Bool> where T.Element == W? {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if all elements except nil are in the range, without the upper end.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: Range<W>) -> Query<Bool> where T.Element == W? {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// The minimum; null for an empty collection.
    public var min: Query<T.Element> { aggregate("@min") }
    /// The maximum; null for an empty collection.
    public var max: Query<T.Element> { aggregate("@max") }
    /// The average; null for an empty collection.
    public var avg: Query<T.Element> { aggregate("@avg") }
    /// The sum of the elements.
    public var sum: Query<T.Element> { aggregate("@sum") }
}

// MARK: Maps

extension Query where T: RealmKeyedCollection {
    /// `true` if the map contains the value.
    public func contains(_ value: T.Value) -> Query<Bool> { contains(constant: queryArgument(value)) }

    /// `true` if the map contains one of the values.
    public func containsAny<U: Sequence>(in values: U) -> Query<Bool> where U.Element == T.Value {
        comparison("IN", .constant(values.map { queryArgument($0) }))
    }

    /// `true` if an entry has the value.
    public static func == (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison("==", .constant(queryArgument(rhs))) }
    /// `true` if an entry has another value.
    public static func != (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison("!=", .constant(queryArgument(rhs))) }

    private func part<R>(_ name: String) -> Query<R> {
        guard case .path(var path) = node else { throwRealmException("Cannot apply key path to Map subscripts.") }
        path.names.append(name)
        path.needsAny = true
        path.isCollection = false
        return Query<R>(.path(path))
    }

    /// All keys. A comparison holds if it holds for one key.
    public var keys: Query<String> { part("@allKeys") }
    /// All values. A comparison holds if it holds for one value.
    public var values: Query<T.Value> { part("@allValues") }

    /// The value for a key; null if the key is missing.
    public subscript(_ key: T.Key) -> Query<T.Value> where T.Key: _MapKey {
        guard case .path(let path) = node else { throwRealmException("Cannot apply key path to Map subscripts.") }
        return Query<T.Value>(.subscripted(path, [.key(key._mapKey)]))
    }

    /// The number of entries.
    public var count: Query<Int> { aggregate("@count") }
}

extension Query where T: RealmKeyedCollection, T.Value.PersistedType: _QueryNumeric {
    /// `true` if a value is greater.
    public static func > (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison(">", .constant(queryArgument(rhs))) }
    /// `true` if a value is greater or equal.
    public static func >= (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison(">=", .constant(queryArgument(rhs))) }
    /// `true` if a value is less.
    public static func < (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison("<", .constant(queryArgument(rhs))) }
    /// `true` if a value is less or equal.
    public static func <= (lhs: Query, rhs: T.Value) -> Query<Bool> { lhs.comparison("<=", .constant(queryArgument(rhs))) }

    /// `true` if all values are in the range, both ends included.
    public func contains(_ range: ClosedRange<T.Value>) -> Query<Bool> where T.Value: Comparable {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if all values are in the range, without the upper end.
    public func contains(_ range: Range<T.Value>) -> Query<Bool> where T.Value: Comparable {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// `true` if all values except nil are in the range, both ends included.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: ClosedRange<W>) -> Query<Bool> where T.Value == W? {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: true)
    }

    /// `true` if all values except nil are in the range, without the upper end.
    public func contains<W: Comparable & _OptionalPersistable>(_ range: Range<W>) -> Query<Bool> where T.Value == W? {
        allIn(queryArgument(range.lowerBound), queryArgument(range.upperBound), isClosed: false)
    }

    /// The minimum; null for an empty map.
    public var min: Query<T.Value> { aggregate("@min") }
    /// The maximum; null for an empty map.
    public var max: Query<T.Value> { aggregate("@max") }
    /// The average; null for an empty map.
    public var avg: Query<T.Value> { aggregate("@avg") }
    /// The sum of the values.
    public var sum: Query<T.Value> { aggregate("@sum") }
}

// MARK: Mixed values

extension Query where T == AnyRealmValue {
    private func going(_ step: QuerySubscript) -> Query<AnyRealmValue> {
        switch node {
        case .path(let path): Query(.subscripted(path, [step]))
        case .subscripted(let path, let steps): Query(.subscripted(path, steps + [step]))
        default: throwRealmException("Cannot apply a subscript to a condition.")
        }
    }

    /// The element at an index of a list in the value; null if there is none.
    public subscript(index: Int) -> Query<AnyRealmValue> { going(.index(index)) }
    /// The value for a key of a dictionary in the value; null if there is none.
    public subscript(key: String) -> Query<AnyRealmValue> { going(.key(key)) }
    /// All elements of a list or dictionary in the value. A comparison holds if it holds for one element.
    public var any: Query<AnyRealmValue> { going(.every) }
}
