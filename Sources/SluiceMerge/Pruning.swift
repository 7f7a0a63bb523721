package import SluiceCore

extension ObjectClocks {
    /// Drops the history that all writers have seen: no later change can miss it. The tombstone of a deleted object stays.
    /// - Parameter horizon: The oldest base that a later changeset can have.
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
            // An entry below the horizon is known to every writer, so no later changeset competes with it.
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
    /// The maximum number of places beyond the present elements. Above it, all places are dropped, and references of older writers resolve
    /// by element value alone.
    static let rememberedPlaces = 4_096

    fileprivate func pruned(below horizon: LSN) -> ListClock? {
        // All writers know the whole list, so it needs no history.
        if places.allSatisfy({ $0.isOld(below: horizon) }) { return nil }
        // One offline device may hold the horizon for long. The bound limits the clock meanwhile.
        if places.count - elements.count > ListClock.rememberedPlaces { return nil }
        var pruned = self
        for index in pruned.places.indices {
            guard let value = pruned.places[index].value else { continue }
            pruned.places[index].value?.clock.prune(below: horizon)
            // All writers know the new value, so it counts as the inserted one.
            if value.lsn < horizon { pruned.places[index].takeValue(from: nil) }
        }
        pruned.dropOld(below: horizon)
        return pruned
    }

    /// Drops the unused places that all writers know. The order of the others is unchanged. Each old place becomes the child of the one
    /// before. A younger child of an old place keeps its gap.
    private mutating func dropOld(below horizon: LSN) {
        let present = elements
        var standing = Set(present.map { places[$0.place].id })
        let byElement = Dictionary(grouping: places.indices) { places[$0].first }
        for element in present where element.first != element.place {
            let all = byElement[places[element.first].id] ?? []
            if all.allSatisfy({ places[$0].isOld(below: horizon) }) {
                // All its moves are old: the current place becomes its first.
                places[element.place].element = nil
                places[element.place].takeValue(from: places[element.first])
            } else {
                standing.formUnion(all.map { places[$0].id })
            }
        }
        let kept = places.filter { place in
            standing.contains(place.id) || !(byElement[place.first] ?? []).allSatisfy { places[$0].isOld(below: horizon) }
        }
        // If no place is dropped, no place has lost its parent.
        guard kept.count < places.count else { return }
        places = kept
        hangAnew(below: horizon)
    }

    private mutating func hangAnew(below horizon: LSN) {
        // Only the place's own position counts, not its element's: old places must have old parents.
        let young = Set(places.filter { $0.lsn >= horizon }.map(\.id))
        var nextOld: [ID?] = Array(repeating: nil, count: places.count)
        var next: ID?
        for index in places.indices.reversed() {
            nextOld[index] = next
            if !young.contains(places[index].id) { next = places[index].id }
        }
        var lastOld: ID?
        for index in places.indices {
            // Old places form a chain: each is the right child of the one before.
            guard young.contains(places[index].id) else {
                (places[index].parent, places[index].isLeft) = (lastOld, false)
                lastOld = places[index].id
                continue
            }
            // A young parent is still in the list, so the place keeps it.
            if let parent = places[index].parent, young.contains(parent) { continue }
            if index > 0, young.contains(places[index - 1].id) {
                (places[index].parent, places[index].isLeft) = (places[index - 1].id, false)
            } else if let next = nextOld[index] {
                // Not the right child of the old place before: the next place of the chain is its sibling there, and stamps would
                // decide which of them is first.
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
