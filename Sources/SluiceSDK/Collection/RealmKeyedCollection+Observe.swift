public import Dispatch
import SluiceCore
import SluiceReplica

/// How a map has changed.
public enum RealmMapChange<Collection: RealmKeyedCollection> {
    /// The map as it is when the observation begins.
    case initial(Collection)
    /// Keys that are gone, keys that are new, and keys whose value is another or has changed itself; each in order.
    case update(Collection, deletions: [Collection.Key], insertions: [Collection.Key], modifications: [Collection.Key])
    /// Never sent; for source compatibility.
    case error(any Error)
}

extension RealmKeyedCollection {
    private func observing(_ keyPaths: [String]?) -> CollectionObserving<Self, RealmMapChange<Self>> {
        let filter = keyPaths.map { valueResults.filter($0) } ?? nil
        return CollectionObserving(self, initial: { .initial($0) }) { map, _, _ throws(SluiceError) in
            var watch = MapWatch(map.valueResults.storage, filter)
            return { delivery throws(SluiceError) in
                try watch.update(delivery.change, on: delivery.store).map { change in
                    func keys(_ texts: [String]) -> [Key] { texts.sorted().compactMap { Key(_mapKey: $0) } }
                    return .update(
                        map, deletions: keys(change.deletions), insertions: keys(change.insertions),
                        modifications: keys(change.modifications))
                }
            }
        }
    }

    /// Calls the block with the map as it is, then after every change of it; see `RealmCollection.observe`.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmMapChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// The same on an actor, with a map of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmMapChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }
}

/// What an observation of a map compares.
private struct MapWatch {
    struct Change {
        var deletions: [String] = []
        var insertions: [String] = []
        var modifications: [String] = []
    }

    private let storage: ResultsStorage
    private let modified: ModifiedElements
    private var entries: [String: Value]

    init(_ storage: ResultsStorage, _ filter: KeyPathFilter?) {
        self.storage = storage
        modified = ModifiedElements(storage, filter)
        entries = MapWatch.entries(of: storage)
        modified.follow(Array(entries.values))
    }

    private static func entries(of storage: ResultsStorage) -> [String: Value] {
        if case .place(let place) = storage.origin, case .dictionary(let entries)? = place.value { entries } else { [:] }
    }

    mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> Change? {
        let changes = try modified.changes(change, of: entries.count, on: store)
        // The map is as it was when its object is; what its values link to may not be.
        if case .place(let place) = storage.origin, let root = place.address?.root, change.types[root.type]?.contains(root.key) != true {
            if changes.candidates?.isEmpty == true { return nil }
            let modifications = entries.filter { changes.contain($0.value) }.map(\.key)
            return modifications.isEmpty ? nil : Change(modifications: modifications)
        }
        let now = MapWatch.entries(of: storage)
        var difference = Change()
        for (key, value) in entries {
            guard let new = now[key] else {
                difference.deletions.append(key)
                continue
            }
            if new != value || changes.contain(new) { difference.modifications.append(key) }
        }
        difference.insertions = now.keys.filter { entries[$0] == nil }
        entries = now
        let values = Set(now.values)
        let new = (difference.insertions + difference.modifications).compactMap { now[$0] }
        modified.follow(new, of: values.count) { values.contains($0) }
        let isEmpty = difference.deletions.isEmpty && difference.insertions.isEmpty && difference.modifications.isEmpty
        return isEmpty ? nil : difference
    }
}
