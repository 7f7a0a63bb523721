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
public protocol RealmSectionedCollection: ThreadConfined {
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

extension SectionedResults: RealmSectionedCollection {
    public typealias SectionedElement = Element

    public func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self> {
        _SectionsObserving(self, storage.results.filter(keyPaths), { $0.storage }, only: nil)
    }
}

extension ResultsSection: RealmSectionedCollection {
    public typealias SectionedElement = Element

    public func _observing(_ keyPaths: [String]?) -> _SectionsObserving<Self> {
        _SectionsObserving(self, storage.results.filter(keyPaths), { $0.storage }, only: key)
    }
}

extension RealmSectionedCollection {
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
}

/// What an observation of sections compares.
private struct SectionsWatch<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    private let storage: SectionsStorage<Key, Element>
    private var watch: CollectionWatch
    private var sections: SectionsStorage<Key, Element>.Sections

    init(_ storage: SectionsStorage<Key, Element>, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        watch = try CollectionWatch(storage.results.storage, filter, store)
        sections = storage.current()
    }

    /// - Parameter only: the section that is asked about; nil: all.
    mutating func update<C>(
        _ delivery: RealmCore.Observation.Delivery, _ collection: C, _ only: Key?
    ) throws(SluiceError) -> SectionedResultsChange<C>? {
        guard let diff = try watch.update(delivery.change, on: delivery.store) else { return nil }
        let (old, new) = (sections, storage.current())
        sections = new
        let change = SectionsDiff(old, new, diff, only)
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

    private struct Place<Key> {
        var key: Key
        var path: IndexPath
    }

    private static func places<Key: Hashable, Element>(_ sections: SectionsStorage<Key, Element>.Sections) -> [Place<Key>?] {
        var places = [Place<Key>?](repeating: nil, count: sections.places.values.reduce(0) { $0 + $1.count })
        for (section, key) in sections.keys.enumerated() {
            for (item, place) in (sections.places[key] ?? []).enumerated() {
                places[place] = Place(key: key, path: [section, item])
            }
        }
        return places
    }

    init<Key: Hashable, Element>(
        _ old: SectionsStorage<Key, Element>.Sections, _ new: SectionsStorage<Key, Element>.Sections, _ diff: CollectionDiff, _ only: Key?
    ) {
        // A section that moved among the others is deleted and inserted with all that is in it.
        let keys = new.keys.difference(from: old.keys)
        for change in keys {
            switch change {
            case .remove(let offset, let key, _): if only == nil || only == key { sectionsToDelete.insert(offset) }
            case .insert(let offset, let key, _): if only == nil || only == key { sectionsToInsert.insert(offset) }
            }
        }
        let removed = Set(keys.removals.compactMap { if case .remove(_, let key, _) = $0 { key } else { nil } })
        let inserted = Set(keys.insertions.compactMap { if case .insert(_, let key, _) = $0 { key } else { nil } })
        let (before, after) = (SectionsDiff.places(old), SectionsDiff.places(new))
        let (deleted, added) = (Set(diff.deletions), Set(diff.insertions))
        let modified = Set(diff.modifications)
        var (from, to) = (0, 0)
        func delete(_ place: Place<Key>?) {
            guard let place, only == nil || only == place.key, !removed.contains(place.key) else { return }
            deletions.append(place.path)
        }
        func insert(_ place: Place<Key>?) {
            guard let place, only == nil || only == place.key, !inserted.contains(place.key) else { return }
            insertions.append(place.path)
        }
        while from < before.count || to < after.count {
            if from < before.count, deleted.contains(from) {
                delete(before[from])
                from += 1
            } else if to < after.count, added.contains(to) {
                insert(after[to])
                to += 1
            } else {
                guard from < before.count, to < after.count else { break }
                if before[from]?.key != after[to]?.key {
                    delete(before[from])
                    insert(after[to])
                } else if modified.contains(to), let place = after[to], only == nil || only == place.key, !inserted.contains(place.key) {
                    modifications.append(place.path)
                }
                (from, to) = (from + 1, to + 1)
            }
        }
        // All that is in a new section is new there.
        for case let place? in after where inserted.contains(place.key) && (only == nil || only == place.key) {
            insertions.append(place.path)
        }
        deletions.sort()
        insertions.sort()
        modifications.sort()
    }
}
