public import Dispatch
import SluiceCore
import SluiceReplica

/// A change of an observed map.
public enum RealmMapChange<Collection: RealmKeyedCollection> {
    /// The map at the start of the observation.
    case initial(Collection)
    /// The removed keys, the new keys, and the keys whose value was replaced or modified; each in ascending order.
    case update(Collection, deletions: [Collection.Key], insertions: [Collection.Key], modifications: [Collection.Key])
    /// Never sent; kept for source compatibility.
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

    /// Calls the block with the current map, then after each change of it; see `RealmCollection.observe`.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmMapChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// Calls the block on an actor, with a map of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmMapChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }
}

/// The state that a map observation compares: the entries as last delivered.
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

    /// Updates the state to the snapshot of `store`.
    /// - Returns: The difference from the last delivery; nil if there is none.
    mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> Change? {
        let changes = try modified.changes(change, of: entries.count, on: store)
        // The map changes only with its owner. Objects that its values link to may still have changed.
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
            // A key that has another object counts, even if that object is unchanged.
            if new != value || changes.contain(new) { difference.modifications.append(key) }
        }
        difference.insertions = now.keys.filter { entries[$0] == nil }
        entries = now
        let values = Set(now.values)
        // Only new values are read: the others were recorded when they were compared.
        let new = (difference.insertions + difference.modifications).compactMap { now[$0] }
        modified.follow(new, of: values.count) { values.contains($0) }
        let isEmpty = difference.deletions.isEmpty && difference.insertions.isEmpty && difference.modifications.isEmpty
        return isEmpty ? nil : difference
    }
}
