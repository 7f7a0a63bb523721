public import Dispatch
public import Foundation
import SluiceCore
import SluiceReplica

/// One value for each element of a collection of objects; live like the collection.
public struct ProjectedCollection<Element>: RandomAccessCollection, CustomStringConvertible, ThreadConfined, TracedValues {
    fileprivate let shown: any ProjectedElements<Element>

    fileprivate init(_ shown: any ProjectedElements<Element>) { self.shown = shown }

    public var startIndex: Int { 0 }
    public var endIndex: Int { shown.count }

    /// The value of the element at an index. Setting it sets the element's property, which needs a write transaction.
    public subscript(position: Int) -> Element {
        get { shown.value(at: position) }
        nonmutating set { shown.set(newValue, at: position) }
    }

    /// The Realm that manages the collection; nil when none does.
    public var realm: Realm? { shown.realm }
    /// Whether the collection is not in the Realm any more.
    public var isInvalidated: Bool { shown.isInvalidated }
    public func _locator() -> _Locator? { shown.locator() }

    /// The values, for people.
    public var description: String {
        "ProjectedCollection<\(Element.self)> {" + enumerated().map { "\n\t[\($0)] \($1)" }.joined() + "\n}"
    }

    /// The place of the first element of the collection that matches; nil when there is none.
    public func index(matching predicate: NSPredicate) -> Int? { shown.index(matching: predicate) }

    /// The place of the first value that is equal; nil when there is none.
    public func index(of value: Element) -> Int? where Element: Equatable { firstIndex(of: value) }

    func touch() { for value in self { (value as? any TracedValues)?.touch() } }

    // MARK: Observing

    private func observing(_ keyPaths: [String]?) -> CollectionObserving<Self, RealmCollectionChange<Self>> {
        let filter = shown.filter(keyPaths)
        return CollectionObserving(self, initial: { .initial($0) }) { collection, _, store throws(SluiceError) in
            var watch = try CollectionWatch(collection.shown.results, filter, store)
            return { delivery throws(SluiceError) in
                try watch.update(delivery.change, on: delivery.store).map {
                    .update(collection, deletions: $0.deletions, insertions: $0.insertions, modifications: $0.modifications)
                }
            }
        }
    }

    /// Calls the block with the values as they are, then after every change of the collection or of its elements.
    /// - Parameters:
    ///   - keyPaths: the properties of the elements whose changes count; nil: all, not only the one that is shown.
    ///   - queue: where to call, with a collection of a Realm of that queue; nil: where the Realm lives.
    /// - Returns: the token that keeps the notifications coming.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// The same on an actor, with a collection of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }
}

@available(*, unavailable)
extension ProjectedCollection: Sendable {}

/// A property of a collection's elements, whatever the collection is.
private protocol ProjectedElements<Element> {
    associatedtype Element
    var count: Int { get }
    func value(at index: Int) -> Element
    func set(_ value: Element, at index: Int)
    var realm: Realm? { get }
    var isInvalidated: Bool { get }
    func locator() -> _Locator?
    func index(matching predicate: NSPredicate) -> Int?
    func filter(_ keyPaths: [String]?) -> KeyPathFilter?
    var results: ResultsStorage { get }
}

private struct ProjectedElementsOf<Base: RealmCollection, Element>: ProjectedElements {
    let base: Base
    let keyPath: KeyPath<Base.Element, Element>

    var count: Int { base.count }
    func value(at index: Int) -> Element { base[index][keyPath: keyPath] }

    func set(_ value: Element, at index: Int) {
        guard let keyPath = keyPath as? ReferenceWritableKeyPath<Base.Element, Element> else {
            throwRealmException("The projected property cannot be set: its key path goes through a value that may be missing.")
        }
        base[index][keyPath: keyPath] = value
    }

    var realm: Realm? { base.realm }
    var isInvalidated: Bool { base.isInvalidated }

    func locator() -> _Locator? {
        guard let core = base.realm?.core, let locator = base._locator() else { return nil }
        let keyPath = keyPath
        return _Locator(core) { core in
            (locator.find(core) as? Base).map { ProjectedCollection(ProjectedElementsOf(base: $0, keyPath: keyPath)) }
        }
    }

    func index(matching predicate: NSPredicate) -> Int? { base.index(matching: predicate) }
    func filter(_ keyPaths: [String]?) -> KeyPathFilter? { base.filter(keyPaths) }
    var results: ResultsStorage { base._results.storage }
}

/// What stands behind `projectTo`.
@dynamicMemberLookup
public struct CollectionElementMapper<Collection: RealmCollection> {
    let collection: Collection

    /// The values of a property of the elements.
    public subscript<Value>(dynamicMember member: KeyPath<Collection.Element, Value>) -> ProjectedCollection<Value> {
        ProjectedCollection(ProjectedElementsOf(base: collection, keyPath: member))
    }
}

extension RealmCollection where Element: ObjectBase {
    /// Leads to the elements' properties: `\Person.friends.projectTo.firstName`.
    public var projectTo: CollectionElementMapper<Self> { CollectionElementMapper(collection: self) }
}
