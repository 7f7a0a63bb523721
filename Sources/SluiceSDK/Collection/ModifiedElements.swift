import SluiceCore
import SluiceReplica

/// Detects the elements of a collection whose contents have changed.
final class ModifiedElements {
    private let kind: ElementKind
    private let core: RealmCore
    /// Used without key paths.
    private let deep: DeepChanges?
    /// Used with key paths.
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

    /// The elements that a change modifies.
    struct Changes {
        /// `true` if an element has changed or may have changed. The answer is undefined for elements that were inserted.
        let contain: (Value) -> Bool
        /// `true` if only the objects' own values count, not those of linked objects.
        let isOwnOnly: Bool
        /// A superset of the modified elements; nil if any element may be modified.
        var candidates: Set<Value>?
    }

    /// Prepares the answers for a change.
    /// - Parameter count: The number of elements of the collection.
    func changes(_ change: ReplicaChange, of count: Int, on store: RowStore) throws(SluiceError) -> Changes {
        // Values change only with their list, which `CollectionWatch` compares.
        guard case .objects(let type) = kind else { return Changes(contain: { _ in false }, isOwnOnly: false, candidates: []) }
        if let followed { return followed.changes(change) }
        guard let deep, deep.concerns(change) else {
            // No class behind a link changed: an element is modified only with its own row.
            let own = change.types[type]
            return Changes(contain: { own?.contains($0) ?? false }, isOwnOnly: true)
        }
        if let candidates = try deep.candidates(change, of: count, on: store) {
            return Changes(contain: { candidates.contains($0) }, isOwnOnly: false, candidates: candidates)
        }
        // Too many objects found backwards: walk forwards from each element instead.
        let walk = deep.walk(change, core)
        return Changes(contain: { walk.hasChanged($0) }, isOwnOnly: false)
    }

    /// Records the values of new elements. O(new elements), amortized.
    /// - Parameters:
    ///   - count: The number of elements of the collection.
    ///   - isElement: `true` if an object is in the collection.
    func follow(_ new: [Value], of count: Int, isElement: (Value) -> Bool) {
        followed?.follow(new)
        followed?.forget(beyond: count, unless: isElement)
    }

    /// Records the values of the first elements.
    func follow(_ elements: [Value]) { followed?.follow(elements) }
}

/// The values that key paths reach from the elements of a collection, and the elements that each object affects.
///
/// The values are kept for comparison. For paths through links, the visited objects are kept too.
/// A change then costs O(affected elements), not O(elements).
final class FollowedElements {
    /// An object read on the way from an element to a value.
    struct Visit: Hashable {
        var type: Int
        var key: Value
        /// The slot of the link property, if the object's inverse links were read instead of the object.
        var inverse: Int?
    }

    private let core: RealmCore
    private let type: Int
    private let filter: KeyPathFilter
    /// The inverse links on the paths: properties by class.
    private let inverses: Set<Visit>
    /// `true` if a path crosses a link to another object.
    private let isBehind: Bool
    /// The last delivered values of each element, one per path.
    private var shown: [Value: [Value]] = [:]
    /// The objects read for each element.
    private var visits: [Value: Set<Visit>] = [:]
    /// The elements that read each object: the reverse of `visits`.
    private var readers: [Visit: Set<Value>] = [:]

    init(_ core: RealmCore, _ type: Int, _ filter: KeyPathFilter) {
        self.core = core
        self.type = type
        self.filter = filter
        isBehind = filter.paths.contains { $0.contains { $0.property.kind.target is Object.Type } }
        inverses = filter.paths.joined().reduce(into: []) { inverses, step in
            guard let (type, slot) = KeyPathResolver.origin(of: step, core) else { return }
            inverses.insert(Visit(type: type, key: .null, inverse: slot))
        }
    }

    /// Records the current values of elements.
    func follow(_ keys: [Value]) { for key in keys { shown[key] = show(key) } }

    /// Forgets elements that left the collection, once more than half of the records are stale.
    func forget(beyond count: Int, unless isElement: (Value) -> Bool) {
        // Rarely: a scan of all records then costs O(1) for each element that left.
        guard shown.count > 2 * count + 16 else { return }
        for key in shown.keys.filter({ !isElement($0) }) {
            shown[key] = nil
            forgetVisits(of: key)
        }
    }

    /// Prepares the answers for a change. An answer also records the element's new values.
    func changes(_ change: ReplicaChange) -> ModifiedElements.Changes {
        let candidates = candidates(change)
        var answers: [Value: Bool] = [:]
        return ModifiedElements.Changes(
            contain: { [self] key in
                // Reading replaces the record, so a second question about the element must be answered from the first.
                if let answer = answers[key] { return answer }
                // Without a record the element is new, and is reported as an insertion.
                guard candidates?.contains(key) ?? true, let before = shown[key] else { return false }
                let now = show(key)
                shown[key] = now
                answers[key] = now != before
                return now != before
            }, isOwnOnly: false, candidates: candidates)
    }

    /// The elements that a change may concern; nil if any element may be concerned.
    private func candidates(_ change: ReplicaChange) -> Set<Value>? {
        // Paths within an element read its own row only.
        guard isBehind else {
            guard let own = change.types[type] else { return [] }
            return own.isWhole ? nil : own.keys
        }
        var candidates: Set<Value> = []
        for (type, objects) in change.types {
            if objects.isWhole { return nil }
            for key in objects.keys {
                if type == self.type { candidates.insert(key) }
                // A removed link is found here too: the objects that were read before are recorded.
                candidates.formUnion(readers[Visit(type: type, key: key)] ?? [])
            }
            // An object that now links to a target affects the elements that read the target's inverse links.
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

    /// The keys that a link property of an object leads to now.
    private func targets(_ type: Int, _ key: Value, _ slot: Int) -> [Value] {
        switch core.reading.row(type, key)?[slot] ?? .null {
        case .null: []
        case .list(let keys): keys
        case .dictionary(let entries): Array(entries.values)
        case let key: [key]
        }
    }

    /// Reads the values of an element and records the objects visited.
    private func show(_ key: Value) -> [Value] {
        // Links may lead elsewhere now: visits of the old path would report changes that no longer concern the element.
        forgetVisits(of: key)
        guard let object = core.object(core.classes.schema(type).objectClass, type: type, key: key) else { return [] }
        var visited: Set<Visit> = []
        let values = filter.paths.map { path in
            KeyPathResolver(core: core, visit: isBehind ? { visited.insert($0) } : nil).value(object, path[...])
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
