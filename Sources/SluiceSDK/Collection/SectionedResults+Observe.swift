public import Dispatch
public import Foundation
import SluiceCore
import SluiceReplica

/// A change of sectioned results or of one of their sections.
public enum SectionedResultsChange<Collection> {
    /// The sections at the start of the observation.
    case initial(Collection)
    /// The difference in sections and items.
    ///
    /// Index paths of `deletions`, and `sectionsToDelete`, refer to the old state. Those of `insertions`, `modifications` and
    /// `sectionsToInsert` refer to the new state. An element that moved to another section is deleted and inserted.
    /// All elements of an inserted section are in `insertions`; those of a deleted section are not in `deletions`.
    case update(
        Collection, deletions: [IndexPath], insertions: [IndexPath], modifications: [IndexPath], sectionsToInsert: IndexSet,
        sectionsToDelete: IndexSet)
}

/// An observable source of sections: `SectionedResults`, or one section.
public protocol RealmSectionedResult: RandomAccessCollection, Equatable, ThreadConfined {
    /// The type of the elements in the sections.
    associatedtype SectionedElement: RealmCollectionValue
    /// A pending observation, for the `observe` methods.
    func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self>
}

/// A pending observation of sections.
public struct _SectionsObserving<Sections: ThreadConfined> {
    let observing: CollectionObserving<Sections, SectionedResultsChange<Sections>>

    /// Creates a pending observation.
    /// - Parameters:
    ///   - storage: The shared state of the sections, on any scheduler.
    ///   - only: The key of the observed section. If nil, all sections are observed.
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
    /// Calls the block with the current sections, then after each change of them; see `RealmCollection.observe`.
    /// An observation of one section also reports the section's own insertion, deletion and moves.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken {
        _observing(keyPaths).observing.start(on: queue, block)
    }

    /// Calls the block for the changes that Swift key paths select.
    public func observe(
        keyPaths: [PartialKeyPath<SectionedElement>], on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken where SectionedElement: ObjectBase {
        _observing(keyPaths.map { _name(for: $0) }).observing.start(on: queue, block)
    }

    /// Calls the block on an actor, with sections of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = _observing(keyPaths).observing
        return await start.start(on: actor, block)
    }

    /// Calls the block on an actor for the changes that Swift key paths select.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<SectionedElement>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken where SectionedElement: ObjectBase {
        let start = _observing(keyPaths.map { _name(for: $0) }).observing
        return await start.start(on: actor, block)
    }
}

/// The state that an observation of sections compares: the layout as last delivered.
private struct SectionsWatch<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    private let storage: SectionsStorage<Key, Element>
    private var watch: CollectionWatch
    private var layout: SectionLayout<Key>
    /// `true` if each element that may have changed its section is in the difference. Key paths hide some of them.
    private let isUnfiltered: Bool

    init(_ storage: SectionsStorage<Key, Element>, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        watch = try CollectionWatch(storage.results.storage, filter, store)
        layout = storage.current()
        isUnfiltered = filter == nil
    }

    /// Updates the state to the snapshot of `store`.
    /// - Parameter only: The key of the observed section. If nil, all sections are observed.
    mutating func update<C>(
        _ delivery: ObservationHub.Observation.Delivery, _ collection: C, _ only: Key?
    ) throws(SluiceError) -> SectionedResultsChange<C>? {
        guard let diff = try watch.update(delivery.change, on: delivery.store) else {
            // No element changed, so the layout stays valid for the new generation.
            if isUnfiltered { storage.show(layout) }
            return nil
        }
        let old = layout
        let followed = isUnfiltered ? layout.following(diff) { storage.key(storage.results[$0]) } : nil
        // Publish the updated layout, so that `current` does not ask the key block for every element.
        if let followed { storage.show(followed) }
        // If the layout could not be updated, this computes it from all elements.
        layout = storage.current()
        let change = SectionsDiff(old, layout, diff, only, isAll: followed == nil)
        if change.isEmpty { return nil }
        return .update(
            collection, deletions: change.deletions, insertions: change.insertions, modifications: change.modifications,
            sectionsToInsert: change.sectionsToInsert, sectionsToDelete: change.sectionsToDelete)
    }
}

/// The difference of sections, derived from that of their elements.
private struct SectionsDiff {
    var deletions: [IndexPath] = []
    var insertions: [IndexPath] = []
    var modifications: [IndexPath] = []
    var sectionsToInsert = IndexSet()
    var sectionsToDelete = IndexSet()

    var isEmpty: Bool {
        deletions.isEmpty && insertions.isEmpty && modifications.isEmpty && sectionsToInsert.isEmpty && sectionsToDelete.isEmpty
    }

    /// Computes the difference.
    /// - Parameters:
    ///   - only: The key of the observed section. If nil, all sections are observed.
    ///   - isAll: `true` if elements outside the difference may have changed their section.
    init<Key: Hashable>(_ old: SectionLayout<Key>, _ new: SectionLayout<Key>, _ diff: CollectionDiff, _ only: Key?, isAll: Bool) {
        // A section that moved among the others is deleted and inserted with its elements.
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
        // nil: the element's section is reported as a whole, or is not observed.
        func path(_ place: Int, in layout: SectionLayout<Key>, unless left: Set<Key>) -> IndexPath? {
            let (section, item) = layout.path(of: place)
            let key = layout.keys[section]
            return (only == nil || only == key) && !left.contains(key) ? [section, item] : nil
        }
        deletions = diff.deletions.compactMap { path($0, in: old, unless: removed) }
        insertions = diff.insertions.compactMap { path($0, in: new, unless: inserted) }
        var kept = KeptPlaces(diff)
        let modified = Set(diff.modifications)
        // Elements outside the difference may have moved to another section: check all of them.
        for place in isAll ? Array(0..<new.count) : diff.modifications {
            guard let before = kept.next(place) else { continue }
            if old.key(of: before) != new.key(of: place) {
                if let path = path(before, in: old, unless: removed) { deletions.append(path) }
                if let path = path(place, in: new, unless: inserted) { insertions.append(path) }
            } else if modified.contains(place), let path = path(place, in: new, unless: inserted) {
                modifications.append(path)
            }
        }
        // All elements of an inserted section are insertions.
        for key in inserted where only == nil || only == key {
            for place in new.places(of: key) {
                let (section, item) = new.path(of: place)
                insertions.append([section, item])
            }
        }
        // Index paths of elements that changed their section were appended out of order.
        deletions.sort()
        insertions.sort()
        modifications.sort()
    }
}

/// The old positions of elements that a difference keeps. Queries must be in the order of the new positions.
private struct KeptPlaces {
    private let diff: CollectionDiff
    private var insertions = 0
    private var deletions = 0

    init(_ diff: CollectionDiff) { self.diff = diff }

    /// Returns the old position.
    /// - Returns: nil if the element at the position was inserted.
    mutating func next(_ place: Int) -> Int? {
        while insertions < diff.insertions.count, diff.insertions[insertions] < place { insertions += 1 }
        if insertions < diff.insertions.count, diff.insertions[insertions] == place { return nil }
        while deletions < diff.deletions.count, diff.deletions[deletions] - deletions <= place - insertions { deletions += 1 }
        return place - insertions + deletions
    }
}
