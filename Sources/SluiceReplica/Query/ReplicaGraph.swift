import SluiceCore
import SluiceQuery

/// The objects of a replica for the evaluation of one query: rows and links as one connection sees them.
///
/// Evaluation cannot throw midway. After an error all reads return empty results; `check` throws the error afterwards.
final class ReplicaGraph: ObjectGraph {
    private let store: RowStore
    private(set) var failure: SluiceError?
    /// Rows read by key. Many objects link to the same one.
    private var rows: [Int: [Value: Row]] = [:]
    private static let keptRows = 4_096
    /// Incoming links without an index, read on first use.
    private var origins: [LinkPlace: [Value: [Value]]] = [:]
    private var counts: [Int: [Value: Int]]?
    /// The number of link counts that are queried one by one before all are read at once.
    private static let askedCounts = 1_000
    private var countsAsked = 0

    private struct LinkPlace: Hashable {
        var target: Int
        var source: Int
        var property: Int
    }

    init(_ store: RowStore) { self.store = store }

    func check() throws(SluiceError) { if let failure { throw failure } }

    private func attempt<R>(_ fallback: R, _ body: () throws(SluiceError) -> R) -> R {
        guard failure == nil else { return fallback }
        do throws(SluiceError) {
            return try body()
        } catch {
            failure = error
            return fallback
        }
    }

    func row(_ key: Value, of type: ObjectType) -> Row? {
        guard let index = store.schema.index(of: type.name) else { return nil }
        if let row = rows[index]?[key] { return row }
        guard let row = attempt(nil, { () throws(SluiceError) in try store.row(type: index, key: key) }) else { return nil }
        // Bounds the cache; a second read costs only time.
        if rows[index, default: [:]].count >= ReplicaGraph.keptRows { rows[index] = [:] }
        rows[index, default: [:]][key] = row
        return row
    }

    func keys(of type: ObjectType) -> [Value] {
        guard let index = store.schema.index(of: type.name) else { return [] }
        return attempt([]) { () throws(SluiceError) in
            var keys: [Value] = []
            try store.visit(RowSelection(type: index)) { key, _ in
                keys.append(key)
                return true
            }
            return keys
        }
    }

    // MARK: Links

    func incoming(to key: Value, of type: ObjectType, from source: ObjectType, property: Int) -> [Value] {
        guard let origin = store.schema.index(of: source.name), let target = store.schema.index(of: type.name) else { return [] }
        if store.links.covers(origin, property) {
            return attempt([]) { () throws(SluiceError) in try store.origins(of: key, type: origin, property: property) }
        }
        let place = LinkPlace(target: target, source: origin, property: property)
        if let known = origins[place] { return known[key] ?? [] }
        var found: [Value: [Value]] = [:]
        visitLinks(of: origin, [property]) { owner, name, key, own in
            if own == property, name == type.name { found[key, default: []].append(owner) }
        }
        origins[place] = found
        return found[key] ?? []
    }

    func incomingCount(to key: Value, of type: ObjectType) -> Int {
        guard let target = store.schema.index(of: type.name) else { return 0 }
        if let counts { return counts[target]?[key] ?? 0 }
        if countsAsked < ReplicaGraph.askedCounts, store.links.isComplete {
            countsAsked += 1
            return attempt(0) { () throws(SluiceError) in try indexedCount(of: target, key) }
        }
        var counts: [Int: [Value: Int]] = [:]
        let walk = LinkWalk(schema: store.schema)
        for layout in store.layouts where layout.hasTable {
            let linking = layout.type.properties.indices.filter { walk.canLink(layout.type.properties[$0]) }
            if linking.isEmpty { continue }
            visitLinks(of: layout.index, linking) { [store] _, name, key, _ in
                if let target = store.schema.index(of: name) { counts[target, default: [:]][key, default: 0] += 1 }
            }
        }
        self.counts = counts
        return counts[target]?[key] ?? 0
    }

    private func indexedCount(of target: Int, _ key: Value) throws(SluiceError) -> Int {
        let walk = LinkWalk(schema: store.schema)
        var count = 0
        for layout in store.layouts where layout.hasTable {
            for (property, description) in layout.type.properties.enumerated()
            where walk.canLink(description, to: store.schema.types[target].name) {
                count += try store.linkCount(layout.index, property, to: target, key)
            }
        }
        return count
    }

    /// Reads properties of all rows of a class and visits their links: owner, class and key of the target, property.
    private func visitLinks(of type: Int, _ properties: [Int], _ body: (Value, String, Value, Int?) -> Void) {
        let walk = LinkWalk(schema: store.schema)
        let layout = store.layouts[type]
        attempt(()) { () throws(SluiceError) in
            try store.visit(RowSelection(type: type, properties: properties, isNested: true)) { owner, row in
                for property in properties {
                    walk.visit(row.value(property) ?? .null, layout.type, property) { body(owner, $0, $1, $2) }
                }
                return true
            }
        }
    }
}
