import SluiceQuery

/// A part of a type-safe query: what `where`'s closure gets and gives back.
///
/// ```swift
/// realm.objects(Task.self).where { $0.progressMinutes > 60 && $0.assignee == "Jo" }
/// ```
/// It builds the text of a predicate, see `_constructPredicate`, and is then treated like one. What does not fit together ends
/// the program.
@dynamicMemberLookup
public struct Query<T> {
    let node: QueryNode

    init(_ node: QueryNode) { self.node = node }

    /// The element itself.
    static var root: Query { Query(.path(QueryPath())) }

    /// The element itself, for tests of what queries are rendered as.
    public static func _constructForTesting() -> Query<T> { root }

    /// The predicate's format and its arguments.
    public func _constructPredicate() -> (String, [Any]) { QueryRendering.render(node) }

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

    /// A property of the object that a link leads to.
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

    /// The collection operator behind the first name of the path: `dogs.@min.age`.
    func aggregate<R>(_ name: String) -> Query<R> {
        guard case .path(var path) = node else { throwRealmException("Cannot apply key path to Map subscripts.") }
        path.aggregate(name)
        return Query<R>(.path(path))
    }

    /// Between two constants, the upper one in or not.
    func range(_ low: Any, _ high: Any, isClosed: Bool) -> Query<Bool> {
        if isClosed { return Query<Bool>(.between(node, .constant(low), .constant(high))) }
        return Query<Bool>(.both(.comparison(node, ">=", .constant(low)), "&&", .comparison(node, "<", .constant(high))))
    }
}

/// What a type-safe query is built of.
indirect enum QueryNode {
    case path(QueryPath)
    case constant(Any?)
    /// A path into a map or a mixed value: `map["k"]`, `any[0]["k"]`.
    case subscripted(QueryPath, [QuerySubscript])
    case comparison(QueryNode, String, QueryNode)
    case both(QueryNode, String, QueryNode)
    case between(QueryNode, QueryNode, QueryNode)
    case not(QueryNode)
    /// How many objects of a collection satisfy a condition.
    case subqueryCount(QueryNode)

    /// As a condition: a Bool property stands for that it is true.
    var isPath: Bool { if case .path = self { true } else { false } }
}

enum QuerySubscript {
    case index(Int)
    case key(String)
    case every
}

/// Names with dots between them.
struct QueryPath {
    var names: [String] = []
    /// The number of names up to the first that is a collection; 0 when none is.
    var collectionEnd = 0
    /// Whether it gives several values and needs a quantifier when it is compared.
    var needsAny = false
    /// Whether it ends in a collection.
    var isCollection = false

    var text: String { names.isEmpty ? "SELF" : names.joined(separator: ".") }
    /// The same for the format of a predicate: names that are words of the language are quoted.
    var format: String { names.isEmpty ? "SELF" : names.map(PredicateFormat.quoted).joined(separator: ".") }

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

/// What a query sees as several values.
public protocol _QueryCollection {}

extension ModelSchema {
    /// The name in the class of the property that a key path of one step leads to.
    func memberName(of keyPath: AnyKeyPath) -> String? {
        name(of: keyPath).flatMap { slot(named: $0) }.map { properties[$0].name }
    }
}
