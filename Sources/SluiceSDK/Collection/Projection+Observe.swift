public import Dispatch
import SluiceCore

extension ProjectionObservable {
    /// Calls the block after changes of what the view shows: not at the beginning, and once for several that came together.
    ///
    /// A change is told with the view's names and values. Properties that show something behind the same property of the object,
    /// `\\.address?.city` and `\\.address?.street`, are told together. Setting a property to the value that it has is a change when
    /// it is done in the same Realm.
    /// - Parameters:
    ///   - keyPaths: the properties that count, by their names in the view or by the object's; nil: all.
    ///   - queue: where to call, with a view of an object of a Realm of that queue; nil: where the Realm lives.
    /// - Returns: the token that keeps the notifications coming.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        let watched = ProjectionWatch<Self>(self, keyPaths)
        return ObjectWatch.start(rootObject, keyPaths: watched.paths, on: queue) { change in
            if let change = watched.change(change) { block(change) }
        }
    }

    /// The same with Swift key paths of the view.
    public func observe(
        keyPaths: [PartialKeyPath<Self>], on queue: DispatchQueue? = nil, _ block: @escaping (ObjectChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, with a view of an object of a Realm of that actor.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        let watched = ProjectionWatch<Self>(self, keyPaths)
        let start = ObjectWatch.Start(rootObject, watched.paths)
        return await start.run(on: actor, { watched.change($0) }, block)
    }

    /// The same on an actor with Swift key paths of the view.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Self>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, ObjectChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, block)
    }
}

/// Tells changes of an object as changes of a view of it.
private struct ProjectionWatch<P: ProjectionObservable>: Sendable {
    private let properties: [ProjectionSchema.Property]

    init(_ projection: P, _ keyPaths: [String]?) {
        properties = ProjectionSchema.of(projection).properties(keyPaths, of: type(of: projection))
    }

    /// The properties of the object that count.
    var paths: [String] { properties.flatMap(\.paths) }

    func change(_ change: ObjectWatch.Change) -> ObjectChange<P>? {
        switch change {
        case .deleted: return .deleted
        case .change(let object, let changes):
            guard let root = object as? P.Root else { return nil }
            let told = projected(changes, of: root)
            return told.isEmpty ? nil : .change(P(projecting: root), told)
        }
    }

    private func projected(_ changes: [PropertyChange], of root: P.Root) -> [PropertyChange] {
        let byName = Dictionary(changes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var before: P.Root?
        return properties.compactMap { property in
            let concerned = property.paths.compactMap { byName[ProjectionWatch.root(of: $0)] }
            if concerned.isEmpty { return nil }
            var old: Any?
            if concerned.contains(where: { $0.oldValue != nil }) {
                let known = before ?? self.before(byName, root)
                before = known
                old = property.value(of: known)
            }
            return PropertyChange(name: property.name, oldValue: old, newValue: property.value(of: root))
        }
    }

    private static func root(of path: String) -> String { String(path.prefix { $0 != "." }) }

    /// The object as it was, as far as the view shows it: what has not changed since is what it is now.
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
