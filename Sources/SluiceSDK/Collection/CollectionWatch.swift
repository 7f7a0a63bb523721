import SluiceCore
import SluiceQuery
import SluiceReplica

/// A result that is followed, with the state of the Realm that it is of: the collection that is observed need not run its query then.
final class FollowedResult {
    fileprivate(set) var live: LiveQuery
    /// Of the Realm's clock.
    fileprivate(set) var generation: UInt64

    init(_ live: LiveQuery, at generation: UInt64) {
        self.live = live
        self.generation = generation
    }
}

/// What an observation of a collection compares: its elements as they were told last.
struct CollectionWatch {
    private let storage: ResultsStorage
    private let modified: ModifiedElements
    private var state: State

    private enum State {
        /// Objects, followed change by change.
        case live(FollowedResult)
        /// Values, objects that may be there several times, or with a condition that the query language does not have: read again after every
        /// change of a class that may concern them.
        case elements([Value])
    }

    /// - Parameter filter: the properties that count as modifications; nil: all, and those of objects that are linked to.
    init(_ storage: ResultsStorage, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        state = try CollectionWatch.state(of: storage, store)
        modified = ModifiedElements(storage, filter)
        modified.follow(keys)
    }

    private static func state(of storage: ResultsStorage, _ store: RowStore) throws(SluiceError) -> State {
        guard storage.rest.isEmpty, case .objects = storage.kind else { return .elements(elements(try storage.read(store))) }
        if case .table = storage.origin {
            let followed = FollowedResult(try LiveQuery(storage.query, on: store), at: storage.core.clock.generation)
            storage.followed = followed
            return .live(followed)
        }
        let base = storage.base().keys
        guard Set(base).count == base.count else { return .elements(elements(try storage.read(store))) }
        return .live(FollowedResult(try LiveQuery(storage.query, over: base, on: store), at: storage.core.clock.generation))
    }

    /// Objects by their keys, others by what they are.
    private static func elements(_ elements: ResultsStorage.Elements) -> [Value] {
        elements.values.isEmpty ? elements.keys : elements.keys.map { elements.value($0) }
    }

    /// The keys of the objects, or the values, that were told last.
    var keys: [Value] {
        switch state {
        case .live(let followed): followed.live.keys
        case .elements(let elements): elements
        }
    }

    private var count: Int {
        switch state {
        case .live(let followed): followed.live.count
        case .elements(let elements): elements.count
        }
    }

    /// Whether an element that took the place of another is a modification: in lists and maps, if it is a value or nothing but
    /// the list decides about places.
    private var isPaired: Bool {
        guard case .place(let place) = storage.origin, place.property?.kind.collection != .set else { return false }
        if case .objects = storage.kind { return storage.query.isWhole && storage.rest.isEmpty }
        return true
    }

    /// - Returns: how the collection differs from what was told last; nil when it does not.
    mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> CollectionDiff? {
        guard concerns(change) else { return nil }
        let changes = try modified.changes(change, of: count, on: store)
        var diff: CollectionDiff
        if case .live(let followed) = state, try !isChosenAnew(followed.live, change, store) {
            diff = try followed.live.update(change, on: store) ?? CollectionWatch.nothing
            followed.generation = storage.core.clock.generation
            if !changes.isOwnOnly { diff.modifications = CollectionWatch.modifications(followed.live, diff, changes) }
            modified.follow(diff.insertions.compactMap { followed.live[$0] }, of: followed.live.count) { key in
                followed.live.position(of: key) != nil
            }
        } else {
            let old = keys
            state = try CollectionWatch.state(of: storage, store)
            let new = keys
            diff = CollectionWatch.difference(old, new) { changes.contain($0) }
            let members = Set(new)
            modified.follow(diff.insertions.map { new[$0] }, of: new.count) { members.contains($0) }
            if isPaired { diff = CollectionWatch.paired(diff, old.count, new.count) }
        }
        return diff.isEmpty ? nil : diff
    }

    /// Whether a change may concern the elements: values change with the object that they are of.
    private func concerns(_ change: ReplicaChange) -> Bool {
        guard case .place(let place) = storage.origin, storage.rest.isEmpty, let root = place.address?.root else { return true }
        if case .objects = storage.kind { return true }
        if storage.query.isWhole { return change.types[root.type]?.contains(root.key) == true }
        return !storage.query.bound.ways.types.union([root.type]).isDisjoint(with: change.types.keys)
    }

    /// Whether the elements are chosen from others than before, or from these in another order: those of a list that changed, or others that
    /// link to an object. They are compared when the object that has the list did, or one of the class that may link.
    private func isChosenAnew(_ live: LiveQuery, _ change: ReplicaChange, _ store: RowStore) throws(SluiceError) -> Bool {
        let isTold = try live.isAll(change, on: store)
        switch storage.origin {
        case .table: return false
        case .place(let place):
            if isTold, let root = place.address?.root, change.types[root.type]?.contains(root.key) != true { return false }
        case .links(_, let type, property: _): if isTold, change.types[type] == nil { return false }
        }
        return storage.base().keys != live.base
    }

    private static func modifications(_ live: LiveQuery, _ diff: CollectionDiff, _ changes: ModifiedElements.Changes) -> [Int] {
        let inserted = Set(diff.insertions)
        if let candidates = changes.candidates {
            let places = candidates.filter { changes.contain($0) }.compactMap { live.position(of: $0) }
            return places.filter { !inserted.contains($0) }.sorted()
        }
        return live.keys.enumerated().filter { !inserted.contains($0) && changes.contain($1) }.map(\.offset)
    }

    private static var nothing: CollectionDiff { CollectionDiff(from: [], to: []) { _ in false } }

    /// Beyond so many steps the difference of two lists with repetitions is not the smallest any more.
    private static let searchLimit = 4_000_000

    /// The difference of two lists in which elements may be several times.
    private static func difference(_ old: [Value], _ new: [Value], isModified: (Value) -> Bool) -> CollectionDiff {
        if Set(old).count == old.count, Set(new).count == new.count { return CollectionDiff(from: old, to: new, isModified: isModified) }
        let prefix = zip(old, new).prefix { $0 == $1 }.count
        let suffix = zip(old.dropFirst(prefix).reversed(), new.dropFirst(prefix).reversed()).prefix { $0 == $1 }.count
        let (rest, fresh) = (old[prefix..<old.count - suffix], new[prefix..<new.count - suffix])
        guard (rest.count + fresh.count) * (rest.count + fresh.count) <= searchLimit else {
            return CollectionDiff(from: numbered(old), to: numbered(new)) { element in
                if case .list(let parts) = element { isModified(parts[0]) } else { false }
            }
        }
        var diff = nothing
        for change in Array(fresh).difference(from: Array(rest)) {
            switch change {
            case .remove(let offset, _, _): diff.deletions.append(prefix + offset)
            case .insert(let offset, _, _): diff.insertions.append(prefix + offset)
            }
        }
        diff.deletions.sort()
        let inserted = Set(diff.insertions)
        diff.modifications = new.indices.filter { !inserted.contains($0) && isModified(new[$0]) }
        return diff
    }

    private static func numbered(_ elements: [Value]) -> [Value] {
        var counts: [Value: Int64] = [:]
        return elements.map { element in
            counts[element, default: 0] += 1
            return .list([element, .int(counts[element] ?? 0)])
        }
    }

    /// Makes modifications of deletions and insertions that stand between the same neighbours.
    private static func paired(_ diff: CollectionDiff, _ old: Int, _ new: Int) -> CollectionDiff {
        let (deleted, inserted, kept) = (Set(diff.deletions), Set(diff.insertions), Set(diff.modifications))
        var paired = nothing
        var (from, to) = (0, 0)
        while from < old || to < new {
            switch (from < old && deleted.contains(from), to < new && inserted.contains(to)) {
            case (true, true):
                paired.modifications.append(to)
                (from, to) = (from + 1, to + 1)
            case (true, false):
                paired.deletions.append(from)
                from += 1
            case (false, true):
                paired.insertions.append(to)
                to += 1
            case (false, false):
                if kept.contains(to) { paired.modifications.append(to) }
                (from, to) = (from + 1, to + 1)
            }
        }
        return paired
    }
}
