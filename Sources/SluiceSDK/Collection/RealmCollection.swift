public import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The base of all collection types.
public protocol RealmCollectionBase: RandomAccessCollection, CustomStringConvertible, ThreadConfined, _QueryCollection
where Element: RealmCollectionValue, Index == Int {
    typealias ElementType = Element
}

/// A collection of values or objects: `Results`, `List`, `MutableSet`, `LinkingObjects`, `AnyRealmCollection`.
///
/// Queries, sorting and observation need a managed collection and trap on an unmanaged one.
/// `index(of:)`, `objects(at:)`, `value(forKey:)`, `setValue(_:forKey:)` and the aggregates work on both.
public protocol RealmCollection<Element>: RealmCollectionBase, Equatable {
    /// The index of the first equal element; nil if there is none.
    func index(of object: Element) -> Int?
    /// The elements as results. Traps if the collection is unmanaged.
    var _results: Results<Element> { get }
    /// The elements as results; nil if the collection is unmanaged.
    var _managedResults: Results<Element>? { get }
}

extension RealmCollection {
    public var _results: Results<Element> {
        guard let results = _managedResults else {
            throwRealmException("This method may only be called on \(Self.self) instances retrieved from a Realm.")
        }
        return results
    }

    // MARK: Copying

    // The standard library counts first and then reads by index. It traps if the Realm advances in between and elements disappear,
    // so these methods iterate instead.

    /// A copy of the current elements.
    public func _copyToContiguousArray() -> ContiguousArray<Element> {
        var all: ContiguousArray<Element> = []
        for element in self { all.append(element) }
        return all
    }

    /// The results of a function for each element.
    public func map<R, E: Error>(_ transform: (Element) throws(E) -> R) throws(E) -> [R] {
        var results: [R] = []
        for element in self { results.append(try transform(element)) }
        return results
    }

    // MARK: Finding

    /// The index of the first element that matches; nil if there is none.
    public func index(matching predicate: NSPredicate) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(predicate))
    }

    /// The index of the first element that matches a predicate; nil if there is none. See `filter` for the format.
    public func index(matching predicateFormat: String, _ args: Any...) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(predicateFormat, args))
    }

    /// The index of the first element that matches a type-safe query; nil if there is none.
    public func index(matching isMatch: (Query<Element>) -> Query<Bool>) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(isMatch))
    }

    /// The elements at the given indices, in ascending order. Traps if an index is out of bounds.
    public func objects(at indexes: IndexSet) -> [Element] { indexes.map { self[$0] } }

    // MARK: Narrowing

    /// The elements that match a type-safe query.
    ///
    /// ```swift
    /// realm.objects(Task.self).where { $0.progressMinutes > 60 }
    /// ```
    public func `where`(_ isIncluded: (Query<Element>) -> Query<Bool>) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(isIncluded)))
    }

    /// The elements that match a predicate in the format of `NSPredicate(format:)` or in the query language.
    /// `%@` and `$0` refer to arguments, `%K` to a property name. Traps if the predicate is invalid.
    public func filter(_ predicateFormat: String, _ args: Any...) -> Results<Element> { matching(predicateFormat, args) }

    func matching(_ predicateFormat: String, _ args: [Any]) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(predicateFormat, args)))
    }

    /// The elements that match a predicate. A block predicate is evaluated for each element, so it costs O(elements).
    public func filter(_ predicate: NSPredicate) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(predicate)))
    }

    // MARK: Order

    /// The same elements sorted by several properties, the most significant first. Null sorts first.
    public func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Element> where S.Element == SortDescriptor {
        Results(storage: _results.storage.sorted(by: Array(sortDescriptors)))
    }

    /// The same elements sorted by a property of the element or of a linked object. Null sorts first.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results<Element> {
        sorted(by: [SortDescriptor(keyPath: keyPath, ascending: ascending)])
    }

    /// The same objects sorted by a property.
    public func sorted<V: _Persistable>(by keyPath: KeyPath<Element, V>, ascending: Bool = true) -> Results<Element>
    where Element: ObjectBase {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The same projections sorted by a property.
    public func sorted<V: _Persistable>(by keyPath: KeyPath<Element, V>, ascending: Bool = true) -> Results<Element>
    where Element: ProjectionObservable {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The same values sorted.
    public func sorted(ascending: Bool) -> Results<Element> { sorted(byKeyPath: ElementModel.selfName, ascending: ascending) }

    /// The same values in ascending order. For comparable values the compiler prefers the standard library's `sorted()`, an array.
    @_disfavoredOverload public func sorted() -> Results<Element> { sorted(ascending: true) }

    /// The first element of each group with equal values of the given properties.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element> where S.Element == String {
        Results(storage: _results.storage.distinct(by: Array(keyPaths)))
    }

    /// The first element of each group with equal values of the given properties.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element> where S.Element == PartialKeyPath<Element>, Element: ObjectBase {
        distinct(by: keyPaths.map { _name(for: $0) })
    }

    /// The distinct values.
    public func distinct() -> Results<Element> { distinct(by: [ElementModel.selfName]) }

    // MARK: Values by name

    /// The values of a property of all elements; `self` returns the elements.
    public func value(forKey key: String) -> Any? {
        key == "self" ? map { $0 as Any } : map { DynamicAccess.value(of: $0, at: key) } as [Any?]
    }

    /// The values that a path reaches from all elements.
    /// A path that starts with `@count`, `@min`, `@max`, `@sum` or `@avg` returns the aggregate.
    public func value(forKeyPath keyPath: String) -> Any? {
        guard keyPath.hasPrefix("@") else { return map { DynamicAccess.value(of: $0, at: keyPath) } as [Any?] }
        let (name, rest) = DynamicAccess.split(keyPath)
        if name == "@count" { return count }
        guard let function = Aggregate(rawValue: name), let rest else { throwRealmException("Unsupported KVC operator '\(name)'.") }
        return CollectionAggregate.of(self, function, rest == "self" ? nil : rest).plain
    }

    /// Sets a property of all elements. Traps if the elements are not objects. Managed objects need a write transaction.
    public func setValue(_ value: Any?, forKey key: String) {
        for element in self {
            guard let object = element as? ObjectBase else { throwRealmException("'\(Element.self)' has no properties to set.") }
            object.setValue(value, forKey: key)
        }
    }
}

/// A property to sort by and a direction, ascending by default.
public struct SortDescriptor: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The path of the property: a property name, or names joined by dots through links.
    public let keyPath: String
    public let ascending: Bool

    public init(keyPath: String, ascending: Bool = true) {
        self.keyPath = keyPath
        self.ascending = ascending
    }

    /// Creates a descriptor for a property of a class.
    public init<T: ObjectBase>(keyPath: PartialKeyPath<T>, ascending: Bool = true) {
        self.init(keyPath: _name(for: keyPath), ascending: ascending)
    }

    public init(stringLiteral value: String) { self.init(keyPath: value) }

    /// The same property in the opposite direction.
    public func reversed() -> SortDescriptor { SortDescriptor(keyPath: keyPath, ascending: !ascending) }

    /// A debug description: the property and the direction.
    public var description: String { "SortDescriptor (keyPath: \(keyPath), ascending: \(ascending))" }
}
