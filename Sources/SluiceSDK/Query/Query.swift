import SluiceCore

/// What a part of a query stands for.
enum QueryPart {
    /// The object itself.
    case root
    case path(String)
    /// A whole condition; `isCompound` when it needs parentheses inside another.
    case condition(String, isCompound: Bool)
}

/// A part of a type-safe query: what `where`'s closure gets and gives back.
///
/// ```swift
/// realm.objects(Task.self).where { $0.progressMinutes > 60 && $0.assignee == "Jo" }
/// ```
@dynamicMemberLookup
public struct Query<T> {
    let part: QueryPart

    init(_ part: QueryPart) { self.part = part }

    /// The part as an operand of a comparison.
    var operand: String {
        switch part {
        case .root: ""
        case .path(let path): path
        case .condition(let text, _): "(\(text))"
        }
    }

    private func path(_ name: String) -> QueryPart {
        if case .path(let path) = part { return .path("\(path).\(RQLText.name(name))") }
        return .path(RQLText.name(name))
    }

    /// A property of the object.
    public subscript<V>(dynamicMember member: KeyPath<T, V>) -> Query<V> where T: ObjectBase {
        guard let name = ModelSchema.of(T.self).name(of: member) else {
            throwRealmException("The key path \(member) leads to no @Persisted property of \(T.self).")
        }
        return Query<V>(path(name))
    }

    /// A property of the object that a link leads to.
    public subscript<V, W: ObjectBase>(dynamicMember member: KeyPath<W, V>) -> Query<V> where T == W? {
        guard let name = ModelSchema.of(W.self).name(of: member) else {
            throwRealmException("The key path \(member) leads to no @Persisted property of \(W.self).")
        }
        return Query<V>(path(name))
    }

    static func comparison(_ left: String, _ operation: String, _ right: String) -> Query<Bool> {
        Query<Bool>(.condition("\(left) \(operation) \(right)", isCompound: false))
    }

    /// The text of a constant.
    static func constant(_ value: some _Persistable) -> String { RQLText.literal(value._stored(in: Query.nobody()).value) }

    private static func nobody() -> ObjectBase { ObjectBase() }
}

extension Query where T == Bool {
    /// The text of the part as a condition: a bool property alone means that it is true.
    var condition: String {
        switch part {
        case .root: "TRUEPREDICATE"
        case .path(let path): "\(path) == true"
        case .condition(let text, _): text
        }
    }

    private var nested: String {
        if case .condition(let text, true) = part { "(\(text))" } else { condition }
    }

    /// Both.
    public static func && (lhs: Query, rhs: Query) -> Query {
        Query(.condition("\(lhs.nested) && \(rhs.nested)", isCompound: true))
    }

    /// Either.
    public static func || (lhs: Query, rhs: Query) -> Query {
        Query(.condition("\(lhs.nested) || \(rhs.nested)", isCompound: true))
    }

    /// Not.
    public static prefix func ! (query: Query) -> Query {
        if case .path(let path) = query.part { return Query(.condition("\(path) == false", isCompound: false)) }
        return Query(.condition("!(\(query.condition))", isCompound: false))
    }
}

// MARK: Comparing

extension Query where T: _Persistable {
    /// Whether the property has the value.
    public static func == (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, "==", constant(rhs)) }
    /// Whether the property has another value.
    public static func != (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, "!=", constant(rhs)) }
    /// Whether two properties have the same value.
    public static func == (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, "==", rhs.operand) }
    /// Whether two properties have different values.
    public static func != (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, "!=", rhs.operand) }

    /// Whether the property has one of the values.
    public func `in`(_ values: some Sequence<T>) -> Query<Bool> {
        Query.comparison(operand, "IN", "{\(values.map { Query.constant($0) }.joined(separator: ", "))}")
    }
}

/// A type whose values have an order in queries.
public protocol _QueryOrdered: _Persistable {}
extension Int: _QueryOrdered {}
extension Int8: _QueryOrdered {}
extension Int16: _QueryOrdered {}
extension Int32: _QueryOrdered {}
extension Int64: _QueryOrdered {}
extension Float: _QueryOrdered {}
extension Double: _QueryOrdered {}
extension Decimal128: _QueryOrdered {}
extension ObjectId: _QueryOrdered {}
extension Optional: _QueryOrdered where Wrapped: _OptionalPersistable & _QueryOrdered {}

extension Query where T: _QueryOrdered {
    public static func < (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, "<", constant(rhs)) }
    public static func <= (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, "<=", constant(rhs)) }
    public static func > (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, ">", constant(rhs)) }
    public static func >= (lhs: Query, rhs: T) -> Query<Bool> { comparison(lhs.operand, ">=", constant(rhs)) }
    public static func < (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, "<", rhs.operand) }
    public static func <= (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, "<=", rhs.operand) }
    public static func > (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, ">", rhs.operand) }
    public static func >= (lhs: Query, rhs: Query) -> Query<Bool> { comparison(lhs.operand, ">=", rhs.operand) }

    /// Whether the value lies in the range, both ends included.
    public func contains(_ range: ClosedRange<T>) -> Query<Bool> where T: Comparable {
        Query.comparison(operand, "BETWEEN", "{\(Query.constant(range.lowerBound)), \(Query.constant(range.upperBound))}")
    }

    /// Whether the value lies in the range, the upper end left out.
    public func contains(_ range: Range<T>) -> Query<Bool> where T: Comparable {
        let (low, high) = (Query.constant(range.lowerBound), Query.constant(range.upperBound))
        return Query<Bool>(.condition("\(operand) >= \(low) && \(operand) < \(high)", isCompound: true))
    }
}

// MARK: Text

/// Which differences a text comparison ignores.
public struct StringOptions: OptionSet, Sendable {
    public let rawValue: Int8
    public init(rawValue: Int8) { self.rawValue = rawValue }
    /// Upper and lower case are the same.
    public static let caseInsensitive = StringOptions(rawValue: 1)
    /// Accents make no difference. Not supported by this store: a query with it is refused.
    public static let diacriticInsensitive = StringOptions(rawValue: 2)

    var suffix: String {
        if contains(.diacriticInsensitive) {
            throwRealmException("Diacritic insensitive comparisons are not supported.")
        }
        return contains(.caseInsensitive) ? "[c]" : ""
    }
}

/// `String` and `String?`.
public protocol _QueryString: _Persistable {}
extension String: _QueryString {}
extension Optional: _QueryString where Wrapped == String {}

extension Query where T: _QueryString {
    private func text(_ operation: String, _ value: T, _ options: StringOptions) -> Query<Bool> {
        Query.comparison(operand, operation + options.suffix, Query.constant(value))
    }

    /// Whether the text contains another.
    public func contains(_ value: T, options: StringOptions = []) -> Query<Bool> { text("CONTAINS", value, options) }
    /// Whether the text begins with another.
    public func starts(with value: T, options: StringOptions = []) -> Query<Bool> { text("BEGINSWITH", value, options) }
    /// Whether the text ends with another.
    public func ends(with value: T, options: StringOptions = []) -> Query<Bool> { text("ENDSWITH", value, options) }
    /// Whether the texts are equal.
    public func equals(_ value: T, options: StringOptions = []) -> Query<Bool> { text("==", value, options) }
    /// Whether the texts differ.
    public func notEquals(_ value: T, options: StringOptions = []) -> Query<Bool> { text("!=", value, options) }
    /// Whether the text matches a pattern in which `?` stands for one character and `*` for any number.
    public func like(_ value: T, caseInsensitive: Bool = false) -> Query<Bool> {
        text("LIKE", value, caseInsensitive ? .caseInsensitive : [])
    }
}

// MARK: Lists

extension Query {
    /// Whether the list contains the value.
    public func contains<E>(_ value: E) -> Query<Bool> where T == List<E> {
        Query<Bool>.comparison(Query<E>.constant(value), "IN", operand)
    }

    /// Whether the list contains one of the values.
    public func containsAny<E>(in values: some Sequence<E>) -> Query<Bool> where T == List<E> {
        let constants = values.map { Query<E>.constant($0) }.joined(separator: ", ")
        return Query<Bool>.comparison("ANY \(operand)", "IN", "{\(constants)}")
    }

}

extension Query where T: _CountedList {
    /// The number of elements.
    public var count: Query<Int> { Query<Int>(.path("\(operand).@count")) }
}

/// `List` of any element.
public protocol _CountedList {}
extension List: _CountedList {}
