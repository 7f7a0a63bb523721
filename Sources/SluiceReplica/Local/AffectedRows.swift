import SluiceCore
import SluiceQuery

/// Finds the objects about which a query may decide anew after a change: those that changed, and those whose way over links leads to one
/// that did, by going these ways backwards, place by place.
///
/// An object is decided about from what stands on its ways. The first on a way that changed is still found from the object, as nothing
/// before it did; so going back over the links that there are now finds all. Only ways that go links backwards themselves need to know
/// the links that there were: these are kept, about 150 bytes for each object that has one.
struct AffectedRows {
    private let ways: LinkWays
    /// By backward hop: what each object of its class linked to when the query was last decided.
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

    /// The objects, as far as `change` tells, in the state that `store` sees.
    /// - Parameter limit: the most that are worth following.
    /// - Returns: nil when there are more, or it does not tell.
    mutating func rows(_ change: ReplicaChange, limit: Int, on store: RowStore) throws(SluiceError) -> Set<Value>? {
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

    /// Takes in how links changed that are gone backwards.
    /// - Returns: of the objects that changed, what they link to now or did before.
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
                moved[hop, default: [:]][key] = now + (targets[hop]?[key] ?? [])
                targets[hop, default: [:]][key] = now.isEmpty ? nil : now
            }
        }
        return moved
    }
}
