public import Dispatch
import SluiceCore
import SluiceReplica

/// How a collection has changed.
public enum RealmCollectionChange<CollectionType> {
    /// The collection as it is when the observation begins.
    case initial(CollectionType)
    /// Indices of `deletions` are those of the old state, of `insertions` and `modifications` of the new one. An object that
    /// changed places is deleted and inserted.
    case update(CollectionType, deletions: [Int], insertions: [Int], modifications: [Int])
    /// Never sent; for source compatibility.
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

    /// The properties that are asked for; nil: all.
    func filter(_ keyPaths: [String]?) -> KeyPathFilter? {
        guard let keyPaths else { return nil }
        guard case .object(let schema) = _results.storage.kind.model(_results.storage.core) else {
            throwRealmException("Key paths can be given for collections of objects only.")
        }
        return KeyPathFilter(keyPaths, of: schema)
    }

    /// Calls the block with the collection as it is, then after every change of it.
    ///
    /// Without key paths a change of an object counts as well that an element leads to by four links or less. With key paths their
    /// values are kept for each element, to be compared: an assignment of an equal value is no change then.
    ///
    /// A notification costs in proportion to the objects that a change may bring in, take out, move or modify, some 0.1 ms at least,
    /// however many the collection has; beyond one in 64 of them it costs what reading the collection does.
    /// - Parameters:
    ///   - keyPaths: the properties of elements whose changes count, `"dogs.name"`; nil: all.
    ///   - queue: where to call, with a collection of a Realm of that queue; nil: where the Realm lives.
    /// - Returns: the token that keeps the notifications coming.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken {
        observing(keyPaths).start(on: queue, block)
    }

    /// The same with Swift key paths.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken where Element: ObjectBase {
        observing(keyPaths.map { _name(for: $0) }).start(on: queue, block)
    }

    /// The same with Swift key paths of views.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil, _ block: @escaping (RealmCollectionChange<Self>) -> Void
    ) -> NotificationToken where Element: ProjectionObservable {
        observing(keyPaths.map { _name(for: $0) }).start(on: queue, block)
    }

    /// The same on an actor, with a collection of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken {
        let start = observing(keyPaths)
        return await start.start(on: actor, block)
    }

    /// The same on an actor with Swift key paths.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken where Element: ObjectBase {
        let start = observing(keyPaths.map { _name(for: $0) })
        return await start.start(on: actor, block)
    }

    /// The same on an actor with Swift key paths of views.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, RealmCollectionChange<Self>) -> Void
    ) async -> NotificationToken where Element: ProjectionObservable {
        let start = observing(keyPaths.map { _name(for: $0) })
        return await start.start(on: actor, block)
    }
}
