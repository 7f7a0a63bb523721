import SluiceCore
import SluiceQuery
import SluiceReplica

/// An observed query result and the generation of the Realm that it belongs to.
/// While the generation matches, the observed `Results` reads it instead of running its query.
final class FollowedResult {
    fileprivate(set) var live: LiveQuery
    /// The generation of the Realm's clock at which `live` is current.
    fileprivate(set) var generation: UInt64

    init(_ live: LiveQuery, at generation: UInt64) {
        self.live = live
        self.generation = generation
    }
}

/// The state that an observation compares: the elements as last delivered.
struct CollectionWatch {
    private let storage: ResultsStorage
    private let modified: ModifiedElements
    private var state: State

    private enum State {
        /// Objects, updated change by change.
        case live(FollowedResult)
        /// Values, repeated objects, or objects with a condition outside the query language.
        /// They are read again after each change of a class that may concern them.
        case elements([Value])
    }

    /// Reads the current elements as the state to compare with.
    /// - Parameter filter: The properties that count as modifications. If nil, all count, including those of linked objects.
    init(_ storage: ResultsStorage, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        state = try CollectionWatch.state(of: storage, store)
        modified = ModifiedElements(storage, filter)
        // Key paths compare values, so those of the start are recorded.
        modified.follow(keys)
    }

    private static func state(of storage: ResultsStorage, _ store: RowStore) throws(SluiceError) -> State {
        guard storage.rest.isEmpty, case .objects = storage.kind else { return .elements(elements(try storage.reader.read(store))) }
        if case .table = storage.origin {
            let followed = FollowedResult(try LiveQuery(storage.query, on: store), at: storage.core.clock.generation)
            // Shared with `Results`, which then reads it instead of running the query.
            storage.followed = followed
            return .live(followed)
        }
        let base = storage.reader.base().keys
        // `LiveQuery` needs distinct keys, and a list may contain an object twice.
        guard Set(base).count == base.count else { return .elements(elements(try storage.reader.read(store))) }
        return .live(FollowedResult(try LiveQuery(storage.query, over: base, on: store), at: storage.core.clock.generation))
    }

    /// The keys of objects, or the values of other elements.
    private static func elements(_ elements: ElementReader.Elements) -> [Value] {
        elements.values.isEmpty ? elements.keys : elements.keys.map { elements.value($0) }
    }

    /// The keys of the objects, or the values, as last delivered.
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

    /// `true` if an element that replaces another one at its position is a modification.
    /// This holds for lists and maps of values, and for unfiltered, unsorted lists and maps of objects.
    private var isPaired: Bool {
        guard case .place(let place) = storage.origin, place.property?.kind.collection != .set else { return false }
        if case .objects = storage.kind { return storage.query.isWhole && storage.rest.isEmpty }
        return true
    }

    /// Updates the state to the snapshot of `store`.
    /// - Returns: The difference from the last delivery; nil if there is none.
    mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> CollectionDiff? {
        guard concerns(change) else { return nil }
        let changes = try modified.changes(change, of: count, on: store)
        var diff: CollectionDiff
        // The base is unchanged: `LiveQuery` updates its result from the change alone.
        if case .live(let followed) = state, try !isChosenAnew(followed.live, change, store) {
            diff = try followed.live.update(change, on: store) ?? CollectionWatch.nothing
            // Without this, `Results` would ignore the updated result and run its query again.
            followed.generation = storage.core.clock.generation
            if !changes.isOwnOnly { diff.modifications = CollectionWatch.modifications(followed.live, diff, changes) }
            modified.follow(diff.insertions.compactMap { followed.live[$0] }, of: followed.live.count) { key in
                followed.live.position(of: key) != nil
            }
        } else {
            let old = keys
            state = try CollectionWatch.state(of: storage, store)
            let new = keys
            // The base or the order changed, so the query ran again: compare both versions of the elements.
            diff = CollectionWatch.difference(old, new) { changes.contain($0) }
            // A set, since records are dropped by membership: O(1) for each record.
            let members = Set(new)
            modified.follow(diff.insertions.map { new[$0] }, of: new.count) { members.contains($0) }
            if isPaired { diff = CollectionWatch.paired(diff, old.count, new.count) }
        }
        return diff.isEmpty ? nil : diff
    }

    /// `true` if a change may concern the elements. Values change only with their owner.
    private func concerns(_ change: ReplicaChange) -> Bool {
        guard case .place(let place) = storage.origin, storage.rest.isEmpty, let root = place.address?.root else { return true }
        if case .objects = storage.kind { return true }
        // Unfiltered values change only with the owner's row; a query also reads the classes on its paths.
        if storage.query.isWhole { return change.types[root.type]?.contains(root.key) == true }
        return !storage.query.bound.ways.types.union([root.type]).isDisjoint(with: change.types.keys)
    }

    /// `true` if the query must run again, because its base has changed: the list's objects, or the objects that link to an owner.
    /// The base is compared only if the owning object, or the linking class, has changed.
    private func isChosenAnew(_ live: LiveQuery, _ change: ReplicaChange, _ store: RowStore) throws(SluiceError) -> Bool {
        // An incomplete change may omit the owner, so the base is compared in that case.
        let isComplete = try live.isAll(change, on: store)
        switch storage.origin {
        case .table: return false
        case .place(let place):
            if isComplete, let root = place.address?.root, change.types[root.type]?.contains(root.key) != true { return false }
        case .links(_, let type, property: _): if isComplete, change.types[type] == nil { return false }
        }
        // The order counts too: a list that was reordered is a new base.
        return storage.reader.base().keys != live.base
    }

    private static func modifications(_ live: LiveQuery, _ diff: CollectionDiff, _ changes: ModifiedElements.Changes) -> [Int] {
        let inserted = Set(diff.insertions)
        if let candidates = changes.candidates {
            // Only the candidates are looked up: O(candidates), not O(result).
            let places = candidates.filter { changes.contain($0) }.compactMap { live.position(of: $0) }
            return places.filter { !inserted.contains($0) }.sorted()
        }
        return live.keys.enumerated().filter { !inserted.contains($0) && changes.contain($1) }.map(\.offset)
    }

    private static var nothing: CollectionDiff { CollectionDiff(from: [], to: []) { _ in false } }

    /// The greatest square of the number of changed elements for which the minimal difference is computed.
    /// Longer lists with repeated elements get a valid difference that may not be minimal.
    private static let searchLimit = 4_000_000

    /// The difference of two lists in which elements may repeat.
    private static func difference(_ old: [Value], _ new: [Value], isModified: (Value) -> Bool) -> CollectionDiff {
        if Set(old).count == old.count, Set(new).count == new.count { return CollectionDiff(from: old, to: new, isModified: isModified) }
        // Most edits touch one place: only the part between the common ends is compared.
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
        // `(element, occurrence)` is unique, so the linear difference of distinct elements applies.
        var counts: [Value: Int64] = [:]
        return elements.map { element in
            counts[element, default: 0] += 1
            return .list([element, .int(counts[element] ?? 0)])
        }
    }

    /// Merges a deletion and an insertion between the same neighbours into a modification.
    private static func paired(_ diff: CollectionDiff, _ old: Int, _ new: Int) -> CollectionDiff {
        let (deleted, inserted, kept) = (Set(diff.deletions), Set(diff.insertions), Set(diff.modifications))
        var paired = nothing
        // The indices advance together over kept elements, so a deletion and an insertion in one gap form a pair.
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
