public import Dispatch
import SluiceCore

extension ProjectionObservable {
    /// Calls the block after changes of the projected properties. There is no initial call, and changes may be combined.
    ///
    /// A change reports the projection's names and values. Properties behind the same property of the object, such as
    /// `\\.address?.city` and `\\.address?.street`, are always reported together.
    /// Setting a property to its current value counts as a change if the same Realm does it.
    /// - Parameters:
    ///   - keyPaths: The properties that count, by their names in the projection or in the object. If nil, all count.
    ///   - queue: The queue of the calls, with an object of a Realm of that queue. If nil, the Realm's thread, queue or actor.
    /// - Returns: A token. The notifications end when it is invalidated or released.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        let watched = ProjectionWatch<Self>(self, keyPaths)
        return ObjectWatch.start(rootObject, keyPaths: watched.paths, on: queue) { change in
            if let change = watched.change(change) { block(change) }
        }
    }

    /// Calls the block after changes of the properties that Swift key paths of the projection name.
    public func observe(
        keyPaths: [PartialKeyPath<Self>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// Calls the block on an actor, with a projection of an object of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        let watched = ProjectionWatch<Self>(self, keyPaths)
        let start = ObjectWatch.Start(rootObject, watched.paths)
        return await start.run(on: actor, { watched.change($0) }, block)
    }

    /// Calls the block on an actor after changes of the properties that Swift key paths of the projection name.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Self>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, block)
    }
}

/// Translates changes of an object into changes of its projection.
private struct ProjectionWatch<P: ProjectionObservable>: Sendable {
    private let properties: [ProjectionSchema.Property]

    init(_ projection: P, _ keyPaths: [String]?) {
        properties = ProjectionSchema.of(projection).properties(keyPaths, of: type(of: projection))
    }

    /// The object's properties that count.
    var paths: [String] { properties.flatMap(\.paths) }

    /// The change of the projection; nil if no projected property has changed.
    func change(_ change: ObjectWatch.Change) -> ObjectChange<P>? {
        switch change {
        case .deleted: return .deleted
        case .change(let object, let changes):
            guard let root = object as? P.Root else { return nil }
            let visible = projected(changes, of: root)
            return visible.isEmpty ? nil : .change(P(projecting: root), visible)
        }
    }

    /// The projection's changes, by the first property of each path.
    private func projected(_ changes: [PropertyChange], of root: P.Root) -> [PropertyChange] {
        let byName = Dictionary(changes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var before: P.Root?
        return properties.compactMap { property in
            let concerned = property.paths.compactMap { byName[ProjectionWatch.root(of: $0)] }
            if concerned.isEmpty { return nil }
            var old: Any?
            if concerned.contains(where: { $0.oldValue != nil }) {
                // One detached copy of the old object serves all properties of the change.
                let known = before ?? self.before(byName, root)
                before = known
                old = property.value(of: known)
            }
            return PropertyChange(name: property.name, oldValue: old, newValue: property.value(of: root))
        }
    }

    private static func root(of path: String) -> String { String(path.prefix { $0 != "." }) }

    /// An unmanaged object with the old values, as far as the projection reads them. Unchanged properties have their current values.
    private func before(_ changes: [String: PropertyChange], _ root: P.Root) -> P.Root {
        let before = P.Root()
        let model = root.model
        for name in Set(paths.map { ProjectionWatch.root(of: $0) }) {
            guard let slot = model.slot(of: name), model.properties[slot].kind.collection == .none, !model.properties[slot].kind.isComputed
            else { continue }
            before.setValue(changes[name].map(\.oldValue) ?? root.value(forKey: name), forKey: name)
        }
        return before
    }
}
