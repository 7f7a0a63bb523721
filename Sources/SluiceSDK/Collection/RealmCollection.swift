public import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

/// What all collections have in common.
public protocol RealmCollectionBase: RandomAccessCollection, CustomStringConvertible, ThreadConfined, _QueryCollection
where Element: RealmCollectionValue, Index == Int {
    typealias ElementType = Element
}

/// A collection of values or objects: `Results`, `List`, `MutableSet`, `LinkingObjects`, `AnyRealmCollection`.
///
/// What is here is there for collections that a Realm manages; on others it ends the program, but for `index(of:)`,
/// `objects(at:)`, `value(forKey:)`, `setValue(_:forKey:)`, and the aggregates.
public protocol RealmCollection<Element>: RealmCollectionBase, Equatable {
    /// The place of the first element that is equal; nil when there is none.
    func index(of object: Element) -> Int?
    /// The elements as results.
    var _results: Results<Element> { get }
    /// The elements as results; nil for a collection that no Realm manages.
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

    // The standard library goes by indices, and ends the program when there are fewer than it has counted: a Realm may move on meanwhile.

    /// The elements now.
    public func _copyToContiguousArray() -> ContiguousArray<Element> {
        var all: ContiguousArray<Element> = []
        for element in self { all.append(element) }
        return all
    }

    /// What a function makes of the elements.
    public func map<R, E: Error>(_ transform: (Element) throws(E) -> R) throws(E) -> [R] {
        var results: [R] = []
        for element in self { results.append(try transform(element)) }
        return results
    }

    // MARK: Finding

    /// The place of the first element that matches; nil when there is none.
    public func index(matching predicate: NSPredicate) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(predicate))
    }

    /// The place of the first element that matches a predicate; see `filter`.
    public func index(matching predicateFormat: String, _ args: Any...) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(predicateFormat, args))
    }

    /// The place of the first element that matches a type-safe query.
    public func index(matching isMatch: (Query<Element>) -> Query<Bool>) -> Int? {
        let results = _results
        return results.storage.firstIndex(results.storage.condition(isMatch))
    }

    /// The elements at some places.
    public func objects(at indexes: IndexSet) -> [Element] { indexes.map { self[$0] } }

    // MARK: Narrowing

    /// Those that match a type-safe query.
    ///
    /// ```swift
    /// realm.objects(Task.self).where { $0.progressMinutes > 60 }
    /// ```
    public func `where`(_ isIncluded: (Query<Element>) -> Query<Bool>) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(isIncluded)))
    }

    /// Those that match a predicate: what `NSPredicate(format:)` takes and the query language besides. `%@` and `$0` stand for
    /// arguments, `%K` for a property's name.
    public func filter(_ predicateFormat: String, _ args: Any...) -> Results<Element> { matching(predicateFormat, args) }

    func matching(_ predicateFormat: String, _ args: [Any]) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(predicateFormat, args)))
    }

    /// Those that match a predicate. One with a block is asked about every element, so it costs the length of the collection.
    public func filter(_ predicate: NSPredicate) -> Results<Element> {
        let storage = _results.storage
        return Results(storage: storage.narrowed(storage.condition(predicate)))
    }

    // MARK: Order

    /// The same elements ordered by several properties, the most significant first. Null comes first.
    public func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Element> where S.Element == SortDescriptor {
        Results(storage: _results.storage.sorted(by: Array(sortDescriptors)))
    }

    /// The same elements ordered by a property, perhaps one of an object that is linked to.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results<Element> {
        sorted(by: [SortDescriptor(keyPath: keyPath, ascending: ascending)])
    }

    /// The same objects ordered by a property.
    public func sorted<V: _Persistable>(by keyPath: KeyPath<Element, V>, ascending: Bool = true) -> Results<Element>
    where Element: ObjectBase {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The same views ordered by a property.
    public func sorted<V: _Persistable>(by keyPath: KeyPath<Element, V>, ascending: Bool = true) -> Results<Element>
    where Element: ProjectionObservable {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The same values in order.
    public func sorted(ascending: Bool) -> Results<Element> { sorted(byKeyPath: ElementModel.selfName, ascending: ascending) }

    /// The same. Of comparable values the standard library's `sorted()` is preferred, which gives an array.
    @_disfavoredOverload public func sorted() -> Results<Element> { sorted(ascending: true) }

    /// The first of those that have equal values of some properties.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element> where S.Element == String {
        Results(storage: _results.storage.distinct(by: Array(keyPaths)))
    }

    /// The first of those that have equal values of some properties.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element> where S.Element == PartialKeyPath<Element>, Element: ObjectBase {
        distinct(by: keyPaths.map { _name(for: $0) })
    }

    /// The same values, equal ones once.
    public func distinct() -> Results<Element> { distinct(by: [ElementModel.selfName]) }

    // MARK: Values by name

    /// The values of a property of all elements; `self` gives the elements.
    public func value(forKey key: String) -> Any? {
        key == "self" ? map { $0 as Any } : map { DynamicAccess.value(of: $0, at: key) } as [Any?]
    }

    /// The values that a path leads to from all elements, or, when it begins with `@count`, `@min`, `@max`, `@sum` or `@avg`,
    /// what they come to.
    public func value(forKeyPath keyPath: String) -> Any? {
        guard keyPath.hasPrefix("@") else { return map { DynamicAccess.value(of: $0, at: keyPath) } as [Any?] }
        let (name, rest) = DynamicAccess.split(keyPath)
        if name == "@count" { return count }
        guard let function = Aggregate(rawValue: name), let rest else { throwRealmException("Unsupported KVC operator '\(name)'.") }
        return CollectionAggregate.of(self, function, rest == "self" ? nil : rest).plain
    }

    /// Sets a property of all elements.
    public func setValue(_ value: Any?, forKey key: String) {
        for element in self {
            guard let object = element as? ObjectBase else { throwRealmException("'\(Element.self)' has no properties to set.") }
            object.setValue(value, forKey: key)
        }
    }
}

/// A property to sort by.
public struct SortDescriptor: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let keyPath: String
    public let ascending: Bool

    public init(keyPath: String, ascending: Bool = true) {
        self.keyPath = keyPath
        self.ascending = ascending
    }

    /// A property of a class to sort by.
    public init<T: ObjectBase>(keyPath: PartialKeyPath<T>, ascending: Bool = true) {
        self.init(keyPath: _name(for: keyPath), ascending: ascending)
    }

    public init(stringLiteral value: String) { self.init(keyPath: value) }

    /// The other way round.
    public func reversed() -> SortDescriptor { SortDescriptor(keyPath: keyPath, ascending: !ascending) }

    /// The property and the direction, for people.
    public var description: String { "SortDescriptor (keyPath: \(keyPath), ascending: \(ascending))" }
}
