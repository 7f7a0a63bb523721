public import Dispatch
public import Foundation
import SluiceCore
import SluiceReplica

/// How sectioned results, or one section of them, have changed.
public enum SectionedResultsChange<Collection> {
    /// The sections as they are when the observation begins.
    case initial(Collection)
    /// Sections and places of `deletions`, and `sectionsToDelete`, are those of the old state; of `insertions`,
    /// `modifications` and `sectionsToInsert` those of the new one. An element that went to another section is deleted and
    /// inserted. All elements of a section that is inserted are among `insertions`; those of one that is deleted are not told.
    case update(
        Collection, deletions: [IndexPath], insertions: [IndexPath], modifications: [IndexPath], sectionsToInsert: IndexSet,
        sectionsToDelete: IndexSet)
}

/// Sections that can be observed: `SectionedResults`, or one of them.
public protocol RealmSectionedResult: RandomAccessCollection, Equatable, ThreadConfined {
    /// What is in the sections.
    associatedtype SectionedElement: RealmCollectionValue
    /// An observation that is about to begin; for the methods below.
    func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self>
}

/// An observation of sections that is about to begin.
public struct _SectionsObserving<Sections: ThreadConfined> {
    let observing: CollectionObserving<Sections, SectionedResultsChange<Sections>>

    /// - Parameters:
    ///   - storage: what the sections stand for, wherever they are.
    ///   - only: the section that is asked about; nil: all.
    init<Key, Element>(
        _ sections: Sections, _ filter: KeyPathFilter?, _ storage: @escaping (Sections) -> SectionsStorage<Key, Element>, only: Key?
    ) {
        observing = CollectionObserving(sections, initial: { .initial($0) }) { sections, _, store throws(SluiceError) in
            var watch = try SectionsWatch(storage(sections), filter, store)
            return { delivery throws(SluiceError) in try watch.update(delivery, sections, only) }
        }
    }
}

extension SectionedResults: RealmSectionedResult {
    public typealias SectionedElement = Element

    public func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self> {
        _SectionsObserving(self, storage.results.filter(keyPaths), { $0.storage }, only: nil)
    }
}

extension ResultsSection: RealmSectionedResult {
    public typealias SectionedElement = Element

    public func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self> {
        _SectionsObserving(self, storage.results.filter(keyPaths), { $0.storage }, only: key)
    }
}

extension RealmSectionedResult {
    /// Calls the block with the sections as they are, then after every change of them; see `RealmCollection.observe`. One section
    /// is told of changes of its place among the others too.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken {
        _observing(keyPaths).observing.start(on: queue, block)
    }

    /// The same with Swift key paths.
    public func observe(
        keyPaths: [PartialKeyPath<SectionedElement>], on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken where SectionedElement: ObjectBase {
        _observing(keyPaths.map { _name(for: $0) }).observing.start(on: queue, block)
    }

    /// The same on an actor, with sections of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = _observing(keyPaths).observing
        return await start.start(on: actor, block)
    }

    /// The same on an actor with Swift key paths.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<SectionedElement>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken where SectionedElement: ObjectBase {
        let start = _observing(keyPaths.map { _name(for: $0) }).observing
        return await start.start(on: actor, block)
    }
}

/// What an observation of sections compares.
private struct SectionsWatch<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    private let storage: SectionsStorage<Key, Element>
    private var watch: CollectionWatch
    private var layout: SectionLayout<Key>
    /// Whether all elements are told of that may have got another section.
    private let hearsAll: Bool

    init(_ storage: SectionsStorage<Key, Element>, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        watch = try CollectionWatch(storage.results.storage, filter, store)
        layout = storage.current()
        hearsAll = filter == nil
    }

    /// - Parameter only: the section that is asked about; nil: all.
    mutating func update<C>(
        _ delivery: RealmCore.Observation.Delivery, _ collection: C, _ only: Key?
    ) throws(SluiceError) -> SectionedResultsChange<C>? {
        guard let diff = try watch.update(delivery.change, on: delivery.store) else {
            if hearsAll { storage.show(layout) }
            return nil
        }
        let old = layout
        let followed = hearsAll ? layout.following(diff) { storage.key(storage.results[$0]) } : nil
        if let followed { storage.show(followed) }
        layout = storage.current()
        let change = SectionsDiff(old, layout, diff, only, isAll: followed == nil)
        if change.isEmpty { return nil }
        return .update(
            collection, deletions: change.deletions, insertions: change.insertions, modifications: change.modifications,
            sectionsToInsert: change.sectionsToInsert, sectionsToDelete: change.sectionsToDelete)
    }
}

/// The difference of sections, from that of the elements that stand in them.
private struct SectionsDiff {
    var deletions: [IndexPath] = []
    var insertions: [IndexPath] = []
    var modifications: [IndexPath] = []
    var sectionsToInsert = IndexSet()
    var sectionsToDelete = IndexSet()

    var isEmpty: Bool {
        deletions.isEmpty && insertions.isEmpty && modifications.isEmpty && sectionsToInsert.isEmpty && sectionsToDelete.isEmpty
    }

    /// - Parameters:
    ///   - only: the section that is asked about; nil: all.
    ///   - isAll: whether elements may have got another section that the difference does not name.
    init<Key: Hashable>(_ old: SectionLayout<Key>, _ new: SectionLayout<Key>, _ diff: CollectionDiff, _ only: Key?, isAll: Bool) {
        // A section that moved among the others is deleted and inserted with all that is in it.
        let keys = old.keys == new.keys ? [] : Array(new.keys.difference(from: old.keys))
        var (removed, inserted): (Set<Key>, Set<Key>) = ([], [])
        for change in keys {
            switch change {
            case .remove(let offset, let key, _):
                removed.insert(key)
                if only == nil || only == key { sectionsToDelete.insert(offset) }
            case .insert(let offset, let key, _):
                inserted.insert(key)
                if only == nil || only == key { sectionsToInsert.insert(offset) }
            }
        }
        func path(_ place: Int, in layout: SectionLayout<Key>, unless left: Set<Key>) -> IndexPath? {
            let (section, item) = layout.path(of: place)
            let key = layout.keys[section]
            return (only == nil || only == key) && !left.contains(key) ? [section, item] : nil
        }
        deletions = diff.deletions.compactMap { path($0, in: old, unless: removed) }
        insertions = diff.insertions.compactMap { path($0, in: new, unless: inserted) }
        var kept = KeptPlaces(diff)
        let modified = Set(diff.modifications)
        for place in isAll ? Array(0..<new.count) : diff.modifications {
            guard let before = kept.next(place) else { continue }
            if old.key(of: before) != new.key(of: place) {
                if let path = path(before, in: old, unless: removed) { deletions.append(path) }
                if let path = path(place, in: new, unless: inserted) { insertions.append(path) }
            } else if modified.contains(place), let path = path(place, in: new, unless: inserted) {
                modifications.append(path)
            }
        }
        // All that is in a new section is new there.
        for key in inserted where only == nil || only == key {
            for place in new.places(of: key) {
                let (section, item) = new.path(of: place)
                insertions.append([section, item])
            }
        }
        deletions.sort()
        insertions.sort()
        modifications.sort()
    }
}

/// Where elements stood that a difference leaves, asked for in the order of their new places.
private struct KeptPlaces {
    private let diff: CollectionDiff
    private var insertions = 0
    private var deletions = 0

    init(_ diff: CollectionDiff) { self.diff = diff }

    /// - Returns: nil for one that was inserted.
    mutating func next(_ place: Int) -> Int? {
        while insertions < diff.insertions.count, diff.insertions[insertions] < place { insertions += 1 }
        if insertions < diff.insertions.count, diff.insertions[insertions] == place { return nil }
        while deletions < diff.deletions.count, diff.deletions[deletions] - deletions <= place - insertions { deletions += 1 }
        return place - insertions + deletions
    }
}
