package import SluiceCore

extension ObjectClocks {
    /// Forgets what nobody needs any more: everything that every writer has seen, since nothing can come that was written without
    /// knowing of it.
    /// - Parameter horizon: No changeset with an older base will ever come.
    package mutating func prune(below horizon: LSN) {
        if !isDeleted, let deletion, deletion.lsn < horizon { self.deletion = nil }
        for id in properties.keys { properties[id]?.prune(below: horizon) }
    }
}

extension PropertyClock {
    mutating func prune(below horizon: LSN) {
        if let reset, reset.lsn < horizon { self.reset = nil }
        contents = contents?.pruned(below: horizon)
    }
}

extension Contents {
    fileprivate func pruned(below horizon: LSN) -> Contents? {
        switch self {
        case .keyed(let entries):
            let kept = entries.filter { $0.value.lsn >= horizon }.mapValues { entry in
                var entry = entry
                entry.clock.prune(below: horizon)
                return entry
            }
            return kept.isEmpty ? nil : .keyed(kept)
        case .members(let members):
            let kept = members.filter { $0.value.lsn >= horizon }
            return kept.isEmpty ? nil : .members(kept)
        case .list(let list): return list.pruned(below: horizon).map { .list($0) }
        }
    }
}

extension ListClock {
    /// Places beyond the elements that are there. Beyond: all are forgotten, and writers who saw an older list are understood
    /// by the values of the elements alone.
    static let rememberedPlaces = 4_096

    fileprivate func pruned(below horizon: LSN) -> ListClock? {
        if places.allSatisfy({ $0.isOld(below: horizon) }) { return nil }
        if places.count - elements.count > ListClock.rememberedPlaces { return nil }
        var pruned = self
        for index in pruned.places.indices {
            guard let value = pruned.places[index].value else { continue }
            pruned.places[index].value?.clock.prune(below: horizon)
            if value.lsn < horizon { pruned.places[index].takeValue(from: nil) }
        }
        pruned.dropOld(below: horizon)
        return pruned
    }

    /// Drops places that everybody knows to be left. The others stay in their order: old ones each hang on the one before, and
    /// younger ones that hung on an old one hang in the gap where they are.
    private mutating func dropOld(below horizon: LSN) {
        let present = elements
        var standing = Set(present.map { places[$0.place].id })
        let byElement = Dictionary(grouping: places.indices) { places[$0].first }
        for element in present where element.first != element.place {
            let all = byElement[places[element.first].id] ?? []
            if all.allSatisfy({ places[$0].isOld(below: horizon) }) {
                // Its way is forgotten: the place where it stands becomes its first.
                places[element.place].element = nil
                places[element.place].takeValue(from: places[element.first])
            } else {
                standing.formUnion(all.map { places[$0].id })
            }
        }
        let kept = places.filter { place in
            standing.contains(place.id) || !(byElement[place.first] ?? []).allSatisfy { places[$0].isOld(below: horizon) }
        }
        guard kept.count < places.count else { return }
        places = kept
        hangAnew(below: horizon)
    }

    private mutating func hangAnew(below horizon: LSN) {
        // Not by what has become of the element: what everybody knows hangs on what everybody knows.
        let young = Set(places.filter { $0.lsn >= horizon }.map(\.id))
        var nextOld: [ID?] = Array(repeating: nil, count: places.count)
        var next: ID?
        for index in places.indices.reversed() {
            nextOld[index] = next
            if !young.contains(places[index].id) { next = places[index].id }
        }
        var lastOld: ID?
        for index in places.indices {
            guard young.contains(places[index].id) else {
                (places[index].parent, places[index].isLeft) = (lastOld, false)
                lastOld = places[index].id
                continue
            }
            if let parent = places[index].parent, young.contains(parent) { continue }
            if index > 0, young.contains(places[index - 1].id) {
                (places[index].parent, places[index].isLeft) = (places[index - 1].id, false)
            } else if let next = nextOld[index] {
                (places[index].parent, places[index].isLeft) = (next, true)
            } else {
                (places[index].parent, places[index].isLeft) = (lastOld, false)
            }
        }
    }
}

extension ListClock.Place {
    fileprivate mutating func takeValue(from other: Self?) {
        value = other?.value
        original = other?.original
    }

    fileprivate func isOld(below horizon: LSN) -> Bool {
        lsn < horizon && removals.allSatisfy { $0.lsn < horizon } && (value.map { $0.lsn < horizon } ?? true)
    }
}
