public import Dispatch
import SluiceCore
import SluiceReplica

/// A change of an observed collection.
public enum RealmCollectionChange<CollectionType> {
    /// The collection at the start of the observation.
    case initial(CollectionType)
    /// Indices of `deletions` refer to the old state, those of `insertions` and `modifications` to the new one; each is ascending.
    /// An object that moved is deleted and inserted.
    case update(CollectionType, deletions: [Int], insertions: [Int], modifications: [Int])
    /// Never sent; kept for source compatibility.
    case error(any Error)
}

extension RealmCollection {
    private func observing(_ keyPaths: [String]?) -> CollectionObserving<Self, RealmCollectionChange<Self>> {
        let filter = filter(keyPaths)
        return CollectionObserving(self, initial: { .initial($0) }) { collection, _, store throws(SluiceError) in
            var watch = try CollectionWatch(collection._results.storage, filter, store)
            return { delivery throws(SluiceError) in
                try watch.update(delivery.change, on: delivery.store).map {
                    .update(collection, deletions: $0.deletions, insertions: $0.insertions, modifications: $0.modifications)
                }
            }
        }
    }

    /// The filter for key paths; nil if all changes count. Traps if the elements are not objects or a path does not exist.
    func filter(_ keyPaths: [String]?) -> KeyPathFilter? {
        guard let keyPaths else { return nil }
        guard case .object(let schema) = _results.storage.kind.model(_results.storage.core) else {
            throwRealmException("Key paths can be given for collections of objects only.")
        }
        return KeyPathFilter(keyPaths, of: schema)
    }

    /// Calls the block with the current collection, then after each change of it.
    ///
    /// Without key paths, a change of an object counts if an element reaches it over at most four links.
    /// With key paths, the values behind them are compared, so assigning an equal value is not a change.
    ///
    /// A notification costs O(objects that the change may insert, delete, move or modify), at least about 0.1 ms.
    /// If these are more than 1,000 and more than one in 64 of the result, the query runs again.
    /// - Parameters:
    ///   - keyPaths: The properties of elements whose changes count, such as `"dogs.name"`. If nil, all count.
    ///   - queue: A serial queue for the calls, with a collection of a Realm of that queue. If nil, the Realm's thread, queue or actor.
    /// - Returns: A token. The notifications end when it is invalidated or released.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// Calls the block for the changes that Swift key paths select.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken where Element: ObjectBase {
        observing(keyPaths.map { _name(for: $0) }).start(on: queue, block)
    }

    /// Calls the block for the changes that Swift key paths of projections select.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken where Element: ProjectionObservable {
        observing(keyPaths.map { _name(for: $0) }).start(on: queue, block)
    }

    /// Calls the block on an actor, with a collection of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }

    /// Calls the block on an actor for the changes that Swift key paths select.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken where Element: ObjectBase {
        let start = observing(keyPaths.map { _name(for: $0) })
        return await start.start(on: actor, block)
    }

    /// Calls the block on an actor for the changes that Swift key paths of projections select.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken where Element: ProjectionObservable {
        let start = observing(keyPaths.map { _name(for: $0) })
        return await start.start(on: actor, block)
    }
}
