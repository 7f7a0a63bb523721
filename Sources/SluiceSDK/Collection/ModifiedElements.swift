import SluiceCore
import SluiceReplica

/// Which elements of a collection of objects other contents have than they had.
final class ModifiedElements {
    private let kind: ElementKind
    private let core: RealmCore
    private let deep: DeepChanges?
    /// With key paths.
    private let followed: FollowedElements?

    init(_ storage: ResultsStorage, _ filter: KeyPathFilter?) {
        core = storage.core
        kind = storage.kind
        guard case .objects(let type) = storage.kind else {
            (deep, followed) = (nil, nil)
            return
        }
        deep = filter == nil ? DeepChanges(core.replica.schema, type) : nil
        followed = filter.map { FollowedElements(storage.core, type, $0) }
    }

    /// What a change does to elements.
    struct Changes {
        /// Whether an element is known to have changed, or may have. Of one that was not in the collection before it says nothing.
        let contain: (Value) -> Bool
        /// Nothing but the objects' own values counts.
        let isOwnOnly: Bool
        /// No others can have; nil: any.
        var candidates: Set<Value>?
    }

    /// - Parameter count: of all elements.
    func changes(_ change: ReplicaChange, of count: Int, on store: RowStore) throws(SluiceError) -> Changes {
        guard case .objects(let type) = kind else { return Changes(contain: { _ in false }, isOwnOnly: false, candidates: []) }
        if let followed { return followed.changes(change) }
        guard let deep, deep.concerns(change) else {
            let own = change.types[type]
            return Changes(contain: { own?.contains($0) ?? false }, isOwnOnly: true)
        }
        if let candidates = try deep.candidates(change, of: count, on: store) {
            return Changes(contain: { candidates.contains($0) }, isOwnOnly: false, candidates: candidates)
        }
        let walk = deep.walk(change, core)
        return Changes(contain: { walk.hasChanged($0) }, isOwnOnly: false)
    }

    /// Notes what new elements show. O(new elements), now and then O(all that were new since).
    /// - Parameters:
    ///   - count: of all elements.
    ///   - isElement: whether an object is in the collection.
    func follow(_ new: [Value], of count: Int, isElement: (Value) -> Bool) {
        followed?.follow(new)
        followed?.forget(beyond: count, unless: isElement)
    }

    /// Notes what the first elements show.
    func follow(_ elements: [Value]) { followed?.follow(elements) }
}

/// What key paths lead to from the elements of a collection, and which elements a changed object concerns.
///
/// The values are kept to be compared. Of paths that go on through links the objects on the way are kept too, so that a change
/// costs what it concerns and not the length of the collection.
final class FollowedElements {
    /// An object that was read on the way from an element to a value.
    struct Visit: Hashable {
        var type: Int
        var key: Value
        /// The object's links backwards by a property of the class `type` were read, not the object: the property's slot.
        var inverse: Int?
    }

    private let core: RealmCore
    private let type: Int
    private let filter: KeyPathFilter
    /// The inverse links on the paths: properties by class.
    private let inverses: Set<Visit>
    private let isBehind: Bool
    private var shown: [Value: [Value]] = [:]
    private var visits: [Value: Set<Visit>] = [:]
    private var readers: [Visit: Set<Value>] = [:]

    init(_ core: RealmCore, _ type: Int, _ filter: KeyPathFilter) {
        self.core = core
        self.type = type
        self.filter = filter
        isBehind = filter.paths.contains { $0.contains { $0.property.kind.target is Object.Type } }
        inverses = filter.paths.joined().reduce(into: []) { inverses, step in
            guard let (type, slot) = Reach.origin(of: step, core) else { return }
            inverses.insert(Visit(type: type, key: .null, inverse: slot))
        }
    }

    func follow(_ keys: [Value]) { for key in keys { shown[key] = show(key) } }

    /// Lets go of objects that left the collection, when they have become many.
    func forget(beyond count: Int, unless isElement: (Value) -> Bool) {
        guard shown.count > 2 * count + 16 else { return }
        for key in shown.keys.filter({ !isElement($0) }) {
            shown[key] = nil
            forgetVisits(of: key)
        }
    }

    func changes(_ change: ReplicaChange) -> ModifiedElements.Changes {
        let candidates = candidates(change)
        var answers: [Value: Bool] = [:]
        return ModifiedElements.Changes(
            contain: { [self] key in
                if let answer = answers[key] { return answer }
                guard candidates?.contains(key) ?? true, let before = shown[key] else { return false }
                let now = show(key)
                shown[key] = now
                answers[key] = now != before
                return now != before
            }, isOwnOnly: false, candidates: candidates)
    }

    /// The elements that a change may concern; nil: any.
    private func candidates(_ change: ReplicaChange) -> Set<Value>? {
        guard isBehind else {
            guard let own = change.types[type] else { return [] }
            return own.isWhole ? nil : own.keys
        }
        var candidates: Set<Value> = []
        for (type, objects) in change.types {
            if objects.isWhole { return nil }
            for key in objects.keys {
                if type == self.type { candidates.insert(key) }
                candidates.formUnion(readers[Visit(type: type, key: key)] ?? [])
            }
            // An object that links to another one now concerns who reads that one's links backwards.
            for inverse in inverses where inverse.type == type {
                for key in objects.keys {
                    for target in targets(type, key, inverse.inverse ?? 0) {
                        candidates.formUnion(readers[Visit(type: type, key: target, inverse: inverse.inverse)] ?? [])
                    }
                }
            }
        }
        return candidates
    }

    private func targets(_ type: Int, _ key: Value, _ slot: Int) -> [Value] {
        switch core.row(type, key)?[slot] ?? .null {
        case .null: []
        case .list(let keys): keys
        case .dictionary(let entries): Array(entries.values)
        case let key: [key]
        }
    }

    private func show(_ key: Value) -> [Value] {
        forgetVisits(of: key)
        guard let object = core.object(core.schema(type).objectClass, type: type, key: key) else { return [] }
        var visited: Set<Visit> = []
        let values = filter.paths.map { path in
            Reach(core: core, visit: isBehind ? { visited.insert($0) } : nil).what(object, path[...])
        }
        if !visited.isEmpty {
            visits[key] = visited
            for visit in visited { readers[visit, default: []].insert(key) }
        }
        return values
    }

    private func forgetVisits(of key: Value) {
        for visit in visits.removeValue(forKey: key) ?? [] {
            readers[visit]?.remove(key)
            if readers[visit]?.isEmpty == true { readers[visit] = nil }
        }
    }
}
