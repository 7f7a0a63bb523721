import SluiceQuery

/// A part of a type-safe query, as the argument and result of `where`'s closure.
///
/// ```swift
/// realm.objects(Task.self).where { $0.progressMinutes > 60 && $0.assignee == "Jo" }
/// ```
/// A query is rendered as the format of a predicate, see `QueryRendering`, and evaluated like one.
/// Invalid combinations end the program.
@dynamicMemberLookup
public struct Query<T> {
    let node: QueryNode

    init(_ node: QueryNode) { self.node = node }

    /// The element itself.
    static var root: Query { Query(.path(QueryPath())) }

    /// Returns the element itself, for tests of the rendering.
    public static func _constructForTesting() -> Query<T> { root }

    /// Returns the predicate's format and its arguments, in the order of the placeholders.
    public func _constructPredicate() -> (String, [Any]) { QueryRendering.render(node, quotesWords: false) }

    // MARK: Going to a property

    private func member<V>(_ name: String, _ type: V.Type) -> Query<V> {
        guard case .path(var path) = node else { throwRealmException("Cannot apply key path to Map subscripts.") }
        path.append(name, isCollection: type is any _QueryCollection.Type)
        return Query<V>(.path(path))
    }

    private static func name(_ keyPath: AnyKeyPath, in type: ObjectBase.Type) -> String {
        guard let name = ModelSchema.of(type).memberName(of: keyPath) else {
            throwRealmException("The key path \(keyPath) leads to no @Persisted property of \(type).")
        }
        return name
    }

    /// A property of the object.
    public subscript<V>(dynamicMember member: KeyPath<T, V>) -> Query<V> where T: ObjectBase {
        self.member(Query.name(member, in: T.self), V.self)
    }

    /// A property of a link's target.
    public subscript<V, W: ObjectBase>(dynamicMember member: KeyPath<W, V>) -> Query<V> where T == W? {
        self.member(Query.name(member, in: W.self), V.self)
    }

    /// A property of the objects of a collection.
    public subscript<V>(dynamicMember member: KeyPath<T.Element, V>) -> Query<V> where T: RealmCollection, T.Element: ObjectBase {
        self.member(Query.name(member, in: T.Element.self), V.self)
    }

    // MARK: Parts of other queries

    func comparison(_ operation: String, _ right: QueryNode) -> Query<Bool> {
        Query<Bool>(.comparison(node, operation, right))
    }

    /// Inserts a collection operator after the path's first collection, or after its first name: `dogs.@min.age`.
    func aggregate<R>(_ name: String) -> Query<R> {
        guard case .path(var path) = node else { throwRealmException("Cannot apply key path to Map subscripts.") }
        path.aggregate(name)
        return Query<R>(.path(path))
    }

    /// Compares with two constants. The lower bound is included; the upper bound only if `isClosed`.
    func range(_ low: Any, _ high: Any, isClosed: Bool) -> Query<Bool> {
        if isClosed { return Query<Bool>(.between(node, .constant(low), .constant(high))) }
        return Query<Bool>(.both(.comparison(node, ">=", .constant(low)), "&&", .comparison(node, "<", .constant(high))))
    }
}

/// The syntax tree of a type-safe query.
indirect enum QueryNode {
    case path(QueryPath)
    case constant(Any?)
    /// A path into a map or a mixed value: `map["k"]`, `any[0]["k"]`.
    case subscripted(QueryPath, [QuerySubscript])
    case comparison(QueryNode, String, QueryNode)
    case both(QueryNode, String, QueryNode)
    case between(QueryNode, QueryNode, QueryNode)
    case not(QueryNode)
    /// The number of objects of a collection that satisfy a condition.
    case subqueryCount(QueryNode)

    /// `true` for a property. As a condition, a Bool property means `== true`.
    var isPath: Bool { if case .path = self { true } else { false } }
}

enum QuerySubscript {
    case index(Int)
    case key(String)
    case every
}

/// A sequence of names, separated by dots in the text.
struct QueryPath {
    var names: [String] = []
    /// The number of names up to and including the first collection; 0 without a collection.
    var collectionEnd = 0
    /// `true` if the path has several values, so that a comparison needs a quantifier.
    var needsAny = false
    /// `true` if the path ends in a collection.
    var isCollection = false

    var text: String { names.isEmpty ? "SELF" : names.joined(separator: ".") }

    mutating func append(_ name: String, isCollection: Bool) {
        names.append(name)
        self.isCollection = isCollection
        guard isCollection else { return }
        if collectionEnd == 0 { collectionEnd = names.count }
        needsAny = true
    }

    mutating func aggregate(_ name: String) {
        names.insert(name, at: collectionEnd > 0 ? collectionEnd : min(1, names.count))
        needsAny = false
        isCollection = false
    }
}

/// A type with several values in queries: lists, sets and maps.
public protocol _QueryCollection {}

extension ModelSchema {
    /// Returns the class's name for the property at a key path of one step; nil if there is none.
    func memberName(of keyPath: AnyKeyPath) -> String? {
        name(of: keyPath).flatMap { slot(named: $0) }.map { properties[$0].name }
    }
}
