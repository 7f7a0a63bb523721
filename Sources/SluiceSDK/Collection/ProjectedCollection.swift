public import Dispatch
public import Foundation
import SluiceCore
import SluiceReplica

/// One value for each element of a collection of objects. It is live, as is the collection.
public struct ProjectedCollection<Element>: RandomAccessCollection, CustomStringConvertible, ThreadConfined, TracedValues {
    fileprivate let shown: any ProjectedElements<Element>

    fileprivate init(_ shown: any ProjectedElements<Element>) { self.shown = shown }

    public var startIndex: Int { 0 }
    public var endIndex: Int { shown.count }

    /// The value of the element at an index. The setter sets the element's property and needs a write transaction.
    public subscript(position: Int) -> Element {
        get { shown.value(at: position) }
        nonmutating set { shown.set(newValue, at: position) }
    }

    /// The Realm that manages the collection; nil if it is unmanaged.
    public var realm: Realm? { shown.realm }
    /// `true` if the collection is no longer in the Realm.
    public var isInvalidated: Bool { shown.isInvalidated }
    public func _locator() -> _Locator? { shown.locator() }

    /// A debug description of the values.
    public var description: String {
        "ProjectedCollection<\(Element.self)> {" + enumerated().map { "\n\t[\($0)] \($1)" }.joined() + "\n}"
    }

    /// The index of the first element of the collection that matches; nil if there is none.
    public func index(matching predicate: NSPredicate) -> Int? { shown.index(matching: predicate) }

    /// The index of the first equal value; nil if there is none.
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

    /// Calls the block with the current values, then after each change of the collection or its elements.
    /// - Parameters:
    ///   - keyPaths: The properties of the elements whose changes count. If nil, all count, not only the projected one.
    ///   - queue: The queue of the calls, with a collection of a Realm of that queue. If nil, the Realm's thread, queue or actor.
    /// - Returns: A token. The notifications end when it is invalidated or released.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// Calls the block on an actor, with a collection of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        // The observation is created before the `await`: the collection may not leave its scheduler.
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }
}

@available(*, unavailable)
extension ProjectedCollection: Sendable {}

/// A property of the elements of any collection type.
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

/// The result of `projectTo`: a property of a collection becomes a collection of its elements' values.
@dynamicMemberLookup
public struct CollectionElementMapper<Collection: RealmCollection> {
    let collection: Collection

    /// The values of a property of the elements.
    public subscript<Value>(dynamicMember member: KeyPath<Collection.Element, Value>) -> ProjectedCollection<Value> {
        ProjectedCollection(ProjectedElementsOf(base: collection, keyPath: member))
    }
}

extension RealmCollection where Element: ObjectBase {
    /// Access to the elements' properties in a key path: `\Person.friends.projectTo.firstName`.
    public var projectTo: CollectionElementMapper<Self> { CollectionElementMapper(collection: self) }
}
