public import Foundation
import SluiceCore
import SluiceReplica

/// The elements of a collection in sections, each with a key.
///
/// Sectioned results are live: each access reads the Realm's current state. Sections are in the order of their first elements.
/// Elements keep the collection's order within their section.
public struct SectionedResults<Key: _Persistable & Hashable, Element: RealmCollectionValue>: RandomAccessCollection, Equatable {
    let storage: SectionsStorage<Key, Element>

    init(_ results: Results<Element>, _ key: @escaping (Element) -> Key) { storage = SectionsStorage(results, key) }
    init(storage: SectionsStorage<Key, Element>) { self.storage = storage }

    /// The keys of the sections, in order.
    public var allKeys: [Key] { storage.current().keys }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    /// The number of sections.
    public var count: Int { storage.current().keys.count }

    /// The section at an index. Traps if the index is out of bounds.
    public subscript(index: Int) -> ResultsSection<Key, Element> {
        let keys = storage.current().keys
        guard keys.indices.contains(index) else {
            throwRealmException("Index \(index) is out of bounds (must be less than \(keys.count)).")
        }
        return ResultsSection(storage, keys[index])
    }

    /// The element at a section and an item. Traps if either is out of bounds.
    public subscript(_ indexPath: IndexPath) -> Element { self[indexPath[0]][indexPath[1]] }

    /// `true` if both are copies of the same sectioned results.
    public static func == (lhs: SectionedResults, rhs: SectionedResults) -> Bool { lhs.storage === rhs.storage }
}

@available(*, unavailable)
extension SectionedResults: Sendable {}

/// A section of `SectionedResults`: the elements with a key. It is live, and empty while no element has the key.
public struct ResultsSection<Key: _Persistable & Hashable, Element: RealmCollectionValue>: RandomAccessCollection, Identifiable, Equatable {
    let storage: SectionsStorage<Key, Element>
    /// The key of the section.
    public let key: Key

    init(_ storage: SectionsStorage<Key, Element>, _ key: Key) {
        self.storage = storage
        self.key = key
    }

    /// The key of the section.
    public var id: Key { key }

    private var places: SectionLayout<Key>.Places { storage.current().places(of: key) }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
    /// The number of elements.
    public var count: Int { places.count }

    public subscript(index: Int) -> Element {
        let places = places
        guard index >= 0, index < places.count else {
            throwRealmException("Index \(index) is out of bounds (must be less than \(places.count)).")
        }
        return storage.results[places[index]]
    }

    /// Returns an iterator over the section's current elements.
    public func makeIterator() -> IndexingIterator<[Element]> { places.map { storage.results[$0] }.makeIterator() }

    /// `true` if both are the same section of the same sectioned results.
    public static func == (lhs: ResultsSection, rhs: ResultsSection) -> Bool { lhs.storage === rhs.storage && lhs.key == rhs.key }
}

@available(*, unavailable)
extension ResultsSection: Sendable {}

extension ResultsSection: CustomStringConvertible {
    public var description: String { "ResultsSection<\(Key.self), \(Element.self)> (\(key): \(count) elements)" }
}

extension SectionedResults: CustomStringConvertible {
    public var description: String { "SectionedResults<\(Key.self), \(Element.self)> (\(count) sections)" }
}

/// The state shared by copies of sectioned results.
final class SectionsStorage<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    let results: Results<Element>
    let key: (Element) -> Key
    private var layout = SectionLayout<Key>(of: [])
    private var generation: UInt64 = 0

    init(_ results: Results<Element>, _ key: @escaping (Element) -> Key) {
        self.results = results
        self.key = key
    }

    /// The current sections. Unless the sections are observed, the block runs for every element after each change of the Realm.
    func current() -> SectionLayout<Key> {
        let core = results.storage.core
        results.storage.advanceIfFloating()
        return core.reading.exclusively {
            if generation != core.clock.generation { show(SectionLayout(of: results.lazy.map(key))) }
            return layout
        }
    }

    /// Stores a layout as that of the current generation. An observation calls this with the layout that it maintains.
    func show(_ layout: SectionLayout<Key>) {
        self.layout = layout
        generation = results.storage.core.clock.generation
    }
}

extension RealmCollection {
    /// The elements in sections by a property, sorted by it.
    public func sectioned<Key: _Persistable & Hashable>(
        by keyPath: KeyPath<Element, Key>, ascending: Bool = true
    ) -> SectionedResults<Key, Element> where Element: ObjectBase {
        SectionedResults(sorted(by: keyPath, ascending: ascending)) { $0[keyPath: keyPath] }
    }

    /// The projections in sections by a property, sorted by it.
    public func sectioned<Key: _Persistable & Hashable>(
        by keyPath: KeyPath<Element, Key>, ascending: Bool = true
    ) -> SectionedResults<Key, Element> where Element: ProjectionObservable {
        SectionedResults(sorted(by: keyPath, ascending: ascending)) { $0[keyPath: keyPath] }
    }

    /// The elements in sections by a property. Traps if `sortDescriptors` is empty.
    /// - Parameter sortDescriptors: The order of the elements. It should start with the property, so that sections are contiguous.
    public func sectioned<Key: _Persistable & Hashable>(
        by keyPath: KeyPath<Element, Key>, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element> where Element: ObjectBase {
        if sortDescriptors.isEmpty {
            throwRealmException("There must be at least one SortDescriptor when using SectionedResults.")
        }
        return SectionedResults(sorted(by: sortDescriptors)) { $0[keyPath: keyPath] }
    }

    /// The elements in sections by the block's result. Traps if `sortDescriptors` is empty.
    /// - Parameters:
    ///   - block: Returns the section of an element. It runs for every element after each change of the Realm.
    ///   - sortDescriptors: The order of the elements. It should keep the elements of a section together.
    public func sectioned<Key: _Persistable & Hashable>(
        by block: @escaping (Element) -> Key, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element> {
        if sortDescriptors.isEmpty {
            throwRealmException("There must be at least one SortDescriptor when using SectionedResults.")
        }
        return SectionedResults(sorted(by: sortDescriptors), block)
    }

    /// The elements in sections by the block's result. Traps if `sortDescriptors` is empty.
    public func sectioned<Key: _Persistable & Hashable>(
        sortDescriptors: [SortDescriptor], _ block: @escaping (Element) -> Key
    ) -> SectionedResults<Key, Element> {
        sectioned(by: block, sortDescriptors: sortDescriptors)
    }

    /// The sorted values in sections by the block's result.
    public func sectioned<Key: _Persistable & Hashable>(
        by block: @escaping (Element) -> Key, ascending: Bool = true
    ) -> SectionedResults<Key, Element> {
        SectionedResults(sorted(ascending: ascending), block)
    }
}

// MARK: Frozen and elsewhere

extension SectionedResults: ThreadConfined {
    public var realm: Realm? { storage.results.realm }
    public var isInvalidated: Bool { storage.results.isInvalidated }

    public func _locator() -> _Locator? {
        guard let locator = storage.results._locator() else { return nil }
        let key = storage.key
        return _Locator(storage.results.storage.core) { core in
            (locator.find(core) as? Results<Element>).map { SectionedResults($0, key) }
        }
    }
}

extension ResultsSection: ThreadConfined {
    public var realm: Realm? { storage.results.realm }
    public var isInvalidated: Bool { storage.results.isInvalidated }

    public func _locator() -> _Locator? {
        guard let locator = SectionedResults(storage: storage)._locator() else { return nil }
        let key = key
        return _Locator(storage.results.storage.core) { core in
            (locator.find(core) as? SectionedResults<Key, Element>).map { ResultsSection($0.storage, key) }
        }
    }
}
