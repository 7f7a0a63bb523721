public import Dispatch
public import Foundation
import SluiceCore

/// What happened to an observed object.
public enum ObjectChange<T> {
    /// Never sent; for source compatibility.
    case error(_ error: NSError)
    /// Properties of the object have changed, in the order of the class.
    case change(_: T, _: [PropertyChange])
    /// The object has been deleted; nothing comes after it.
    case deleted
}

/// A property that has changed.
public struct PropertyChange {
    /// As the class has it.
    public let name: String
    /// Nil for collections, and for changes that were made in the same Realm, where the value before is not kept. An object
    /// shows what it is now; one that was deleted is invalidated.
    public let oldValue: Any?
    /// Nil for collections.
    public let newValue: Any?
}

extension ThreadConfined where Self: ObjectBase {
    /// Calls the block after changes of the object: not at the beginning, and once for several that came together.
    ///
    /// Setting a property to the value that it has is a change when it is done in the same Realm.
    /// - Parameters:
    ///   - keyPaths: the properties that count; nil: all. Behind a link or a collection, `"dogs.name"`, properties of the objects
    ///     there count as changes of the link; `*` stands for all properties.
    ///   - queue: where to call, with an object of a Realm of that queue; nil: where the Realm lives.
    /// - Returns: the token that keeps the notifications coming.
    public func observe<T: ObjectBase>(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        ObjectWatch.start(self, keyPaths: keyPaths, on: queue) { change in ObjectChange<T>(change).map(block) }
    }

    /// The same with Swift key paths.
    public func observe<T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<T>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, with an object of a Realm of that actor.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let start = ObjectWatch.Start(self, keyPaths)
        return await start.run(on: actor, { ObjectChange<T>($0) }, block)
    }

    /// The same on an actor with Swift key paths.
    public func observe<A: Actor, T: ObjectBase>(
        keyPaths: [PartialKeyPath<T>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<T>) -> Void
    ) async -> NotificationToken {
        let start = ObjectWatch.Start(self, keyPaths.map { _name(for: $0) })
        return await start.run(on: actor, { ObjectChange<T>($0) }, block)
    }
}
