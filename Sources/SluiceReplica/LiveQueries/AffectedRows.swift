import SluiceCore
import SluiceQuery

/// Finds the objects whose membership in a query may change: the changed ones, and those with a link path to a changed one. The search
/// follows the link paths backwards, step by step.
///
/// Nothing before the first changed object on a path has changed, so the current links still lead back from it. Only paths with
/// backward hops need the earlier links. These are kept, at about 150 bytes for each object that has one.
struct AffectedRows {
    private let ways: LinkWays
    /// By backward hop: the link targets of each object of its class when the query was last evaluated.
    private var targets: [LinkHop: [Value: [Value]]] = [:]

    /// Nil when the file has no index for the links.
    init?(_ ways: LinkWays, on store: RowStore) throws(SluiceError) {
        guard store.follows(ways.hops) else { return nil }
        self.ways = ways
        for hop in ways.hops { try read(hop, store) }
    }

    private mutating func read(_ hop: LinkHop, _ store: RowStore) throws(SluiceError) {
        guard case .backward(let target, let from, let property) = hop else { return }
        var known: [Value: [Value]] = [:]
        try store.visit(RowSelection(type: from, properties: [property], isNested: true, isOrdered: false)) { owner, row in
            let links = AffectedRows.links(row.value(property) ?? .null, from, property, to: target, store)
            if !links.isEmpty { known[owner] = links }
            return true
        }
        targets[hop] = known
    }

    private static func links(_ value: Value, _ type: Int, _ property: Int, to target: Int, _ store: RowStore) -> [Value] {
        if value.isNull { return [] }
        var links: [Value] = []
        let name = store.schema.types[target].name
        LinkWalk(schema: store.schema).visit(value, store.schema.types[type], property) { found, key, _ in
            if found == name { links.append(key) }
        }
        return links
    }

    /// Returns the affected objects after `change`, in the state that `store` reads.
    /// - Parameter limit: the largest number of objects for each step.
    /// - Returns: nil if a step exceeds it, or if the change names only a class.
    mutating func rows(_ change: ReplicaChange, limit: Int, on store: RowStore) throws(SluiceError) -> Set<Value>? {
        // First, and also if the answer is nil below: the kept links must follow each change.
        let moved = try take(change, store)
        var reached: [Set<Value>] = []
        for place in ways.places {
            let changed = change.types[place.type]
            if changed?.isWhole == true || changed.map({ $0.keys.count > limit }) == true { return nil }
            reached.append(changed?.keys ?? [])
        }
        // A place comes after the one that it is reached from.
        for index in ways.places.indices.reversed() {
            guard let origin = ways.places[index].origin else { continue }
            for key in reached[index] {
                switch origin.hop {
                case .forward(let from, let property, let to):
                    reached[origin.place].formUnion(try store.owners(from, property, of: to, key, limit: limit))
                case .backward: reached[origin.place].formUnion(moved[origin.hop]?[key] ?? targets[origin.hop]?[key] ?? [])
                }
                if reached[origin.place].count > limit { return nil }
            }
        }
        return reached[0]
    }

    /// Updates the kept links of backward hops.
    /// - Returns: the present and the earlier link targets of the changed objects.
    private mutating func take(_ change: ReplicaChange, _ store: RowStore) throws(SluiceError) -> [LinkHop: [Value: [Value]]] {
        var moved: [LinkHop: [Value: [Value]]] = [:]
        for hop in ways.hops {
            guard case .backward(let target, let from, let property) = hop, let changed = change.types[from] else { continue }
            if changed.isWhole {
                try read(hop, store)
                continue
            }
            for key in changed.keys {
                let value = try store.row(type: from, key: key)?[property] ?? .null
                let now = AffectedRows.links(value, from, property, to: target, store)
                // Both count: an object may enter by a new link and leave by an earlier one.
                moved[hop, default: [:]][key] = now + (targets[hop]?[key] ?? [])
                targets[hop, default: [:]][key] = now.isEmpty ? nil : now
            }
        }
        return moved
    }
}
