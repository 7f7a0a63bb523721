import SluiceCore
import SluiceReplica

/// What an observation of a collection compares: its elements as they were told last.
struct CollectionWatch {
    private let storage: ResultsStorage
    private let modified: ModifiedElements
    private var state: State

    private enum State {
        /// Objects of a class, followed change by change.
        case live(LiveQuery)
        /// Anything else, read again after every change.
        case elements([Value])
    }

    /// - Parameter filter: the properties that count as modifications; nil: all, and those of objects that are linked to.
    init(_ storage: ResultsStorage, _ filter: KeyPathFilter?, _ store: RowStore) throws(SluiceError) {
        self.storage = storage
        if case .table = storage.origin, storage.rest.isEmpty {
            state = .live(try LiveQuery(storage.query, on: store))
        } else {
            state = .elements(CollectionWatch.elements(try storage.read(store)))
        }
        modified = ModifiedElements(storage, filter)
        modified.follow(keys)
    }

    /// Objects by their keys, others by what they are.
    private static func elements(_ elements: ResultsStorage.Elements) -> [Value] {
        elements.values.isEmpty ? elements.keys : elements.keys.map { elements.value($0) }
    }

    /// The keys of the objects, or the values, that were told last.
    var keys: [Value] {
        switch state {
        case .live(let live): live.keys
        case .elements(let elements): elements
        }
    }

    private var count: Int {
        switch state {
        case .live(let live): live.count
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
        let changes = try modified.changes(change, of: count, on: store)
        var diff: CollectionDiff
        switch state {
        case .live(var live):
            // One owner at a time: a copy would cost the length of the result.
            state = .elements([])
            defer { state = .live(live) }
            diff = try live.update(change, on: store) ?? CollectionWatch.nothing
            if !changes.isOwnOnly { diff.modifications = CollectionWatch.modifications(live, diff, changes) }
            modified.follow(diff.insertions.compactMap { live[$0] }, of: live.count) { live.position(of: $0) != nil }
        case .elements(let old):
            let new = CollectionWatch.elements(try storage.read(store))
            diff = CollectionWatch.difference(old, new) { changes.contain($0) }
            let members = Set(new)
            modified.follow(diff.insertions.map { new[$0] }, of: new.count) { members.contains($0) }
            if isPaired { diff = CollectionWatch.paired(diff, old.count, new.count) }
            state = .elements(new)
        }
        return diff.isEmpty ? nil : diff
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
