public import Dispatch
public import Foundation
import SluiceCore

/// A change of an observed object.
public enum ObjectChange<T> {
    /// Never sent; for source compatibility.
    case error(_ error: NSError)
    /// Properties of the object have changed, in the order of the class.
    case change(_: T, _: [PropertyChange])
    /// The object has been deleted. This is the last notification.
    case deleted
}

/// A changed property.
public struct PropertyChange {
    /// The name in the class.
    public let name: String
    /// The previous value. Nil for collections, and for changes by the same Realm, which does not keep the previous value.
    /// An object shows its current state; a deleted object is invalidated.
    public let oldValue: Any?
    /// The current value; nil for collections.
    public let newValue: Any?
}

extension ThreadConfined where Self: ObjectBase {
    /// Calls the block after changes of the object, but not initially. Changes that arrive together cause one call.
    ///
    /// Setting a property to its current value is a change if the same Realm does it.
    /// A call within a write transaction ends the program, and so does an unmanaged, frozen or read-only object.
    /// - Parameters:
    ///   - keyPaths: the observed properties; nil: all. A path through a link or collection, `"dogs.name"`, reports changes of the
    ///     targets' properties as changes of the link. `*` means all properties.
    ///   - queue: the queue for the block, with an object of a Realm of that queue. Nil: the Realm's queue or actor, or a
    ///     private queue if the Realm belongs to a plain thread or a task.
    /// - Returns: the token that keeps the observation alive.
    public func observe<T: ObjectBase>(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        ObjectWatch.start(self, keyPaths: keyPaths, on: queue) { change in ObjectChange<T>(change).map(block) }
    }

    /// Observes the object with Swift key paths.
    public func observe<T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// Observes the object on an actor, with an object of a Realm of that actor.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let start = ObjectWatch.Start(self, keyPaths)
        return await start.run(on: actor, { ObjectChange<T>($0) }, block)
    }

    /// Observes the object on an actor, with Swift key paths.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let start = ObjectWatch.Start(self, keyPaths.map { _name(for: $0) })
        return await start.run(on: actor, { ObjectChange<T>($0) }, block)
    }
}
