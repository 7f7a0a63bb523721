package import SluiceCore
import SluiceQuery

/// The result of a query as it was last delivered, kept up to date change by change.
///
/// A condition and an order on the objects' own values are followed from the keys that changed: about 0.1 ms for each, however large the
/// result is. A query through links, or with DISTINCT or LIMIT, is run again after a change of any class that it reads, and so is every
/// query after a change of very many objects: the cost of `ReplicaQuery.run` and of comparing two lists.
package struct LiveQuery {
    package let query: ReplicaQuery
    private var members: OrderedKeys
    /// Nil: a change cannot be followed key by key.
    private let order: [(property: Int, ascending: Bool)]?
    private let readTypes: Set<Int>?
    /// The version of the state that the result is of.
    private var version: UInt64

    /// Changed keys that are followed one by one in any result; in a large one more are, see `follows`.
    private static let fewKeys = 1_000

    /// Runs the query for the first time.
    package init(_ query: ReplicaQuery, on store: RowStore) throws(SluiceError) {
        self.query = query
        order = query.bound.predicate == nil ? nil : query.bound.ownSortKeys
        readTypes = query.bound.readTypes
        version = try store.version()
        members = OrderedKeys(try query.run(on: store))
    }

    /// The keys of the result; O(result).
    package var keys: [Value] { members.keys }
    package var count: Int { members.count }
    /// The key at a place; nil when there is none. Some microseconds in a large result.
    package subscript(_ index: Int) -> Value? { members[index] }
    /// The place of a key; nil when it is not in the result. Some microseconds in a large result.
    package func position(of key: Value) -> Int? { members.position(of: key) }

    /// Brings the result up to the state that `store` sees.
    /// - Parameters:
    ///   - change: what was committed since the last time, up to its version; or with version 0 what an open transaction has done so far.
    ///     When `store` sees more, as news of a commit come a moment after it, the query is run again.
    /// - Returns: how the result differs; nil when it does not.
    package mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> CollectionDiff? {
        let seen = try store.version()
        let isAll = change.version == seen || change.version == 0 && version == seen
        version = seen
        let concerns = readTypes.map { types in change.types.keys.contains { types.contains($0) } } ?? true
        if isAll, !concerns { return nil }
        let changed = change.types[query.type] ?? TypeChange()
        if let order, isAll, follows(changed) { return try follow(changed.keys, order, store) }
        let (old, new) = (members.keys, try query.run(on: store))
        let diff = CollectionDiff(from: old, to: new) { changed.contains($0) }
        if old != new { members = OrderedKeys(new) }
        return diff.isEmpty ? nil : diff
    }

    private func follows(_ changed: TypeChange) -> Bool {
        !changed.isWhole && (changed.keys.count <= LiveQuery.fewKeys || changed.keys.count <= members.count / 64)
    }

    private struct Place {
        var key: Value
        var index: Int
    }

    private mutating func follow(
        _ changed: Set<Value>, _ order: [(property: Int, ascending: Bool)], _ store: RowStore
    ) throws(SluiceError) -> CollectionDiff? {
        let plan = ReplicaPlan(query, store)
        var before: [Place] = []
        var after: [Value] = []
        for key in changed {
            if let index = members.position(of: key) { before.append(Place(key: key, index: index)) }
            if try plan.matches(key) { after.append(key) }
        }
        if before.isEmpty && after.isEmpty { return nil }
        for place in before { members.remove(place.key) }
        var comparison = RowOrder(type: query.type, keys: order, store: store)
        for key in after {
            let position = try comparison.position(of: key, isKept: true)
            try members.insert(key) { other throws(SluiceError) in
                comparison.precedes(position, try comparison.position(of: other, isKept: false))
            }
        }
        let placed = after.map { Place(key: $0, index: members.position(of: $0) ?? 0) }
        return LiveQuery.difference(before.sorted { $0.index < $1.index }, placed.sorted { $0.index < $1.index })
    }

    /// What happened to the changed objects, from their places before and after, ascending. Objects that did not change keep their order, so
    /// one that did has kept its place when as many of those are before it as were, and it did not pass another changed one.
    private static func difference(_ before: [Place], _ after: [Place]) -> CollectionDiff {
        var gaps: [Value: (order: Int, unchanged: Int)] = [:]
        for (order, place) in before.enumerated() { gaps[place.key] = (order, place.index - order) }
        let origins = after.enumerated().map { order, place in
            gaps[place.key].flatMap { $0.unchanged == place.index - order ? $0.order : nil }
        }
        let isKept = CollectionDiff.longestAscending(origins)
        var diff = CollectionDiff()
        var stays = Set<Int>()
        for (order, place) in after.enumerated() {
            if isKept[order], let origin = origins[order] {
                stays.insert(origin)
                diff.modifications.append(place.index)
            } else {
                diff.insertions.append(place.index)
            }
        }
        diff.deletions = before.indices.filter { !stays.contains($0) }.map { before[$0].index }
        return diff
    }
}

/// The order of rows by some of their own values and then by the table's order, read row by row.
private struct RowOrder {
    struct Position {
        var values: [Value]
        var rowid: Int64
    }

    let type: Int
    let keys: [(property: Int, ascending: Bool)]
    let store: RowStore
    private let properties: [Int]
    private var known: [Value: Position] = [:]

    init(type: Int, keys: [(property: Int, ascending: Bool)], store: RowStore) {
        self.type = type
        self.keys = keys
        self.store = store
        properties = Set(keys.map(\.property)).sorted()
    }

    /// - Parameter isKept: whether it will be asked for again.
    mutating func position(of key: Value, isKept: Bool) throws(SluiceError) -> Position {
        if let position = known[key] { return position }
        var values: [Value] = []
        if !keys.isEmpty {
            try store.visit(RowSelection(type: type, key: key, properties: properties, isOrdered: false)) { _, row in
                values = keys.map { row.value($0.property) ?? .null }
                return false
            }
        }
        let position = Position(values: values, rowid: try store.rowid(type: type, key: key) ?? .max)
        if isKept { known[key] = position }
        return position
    }

    func precedes(_ left: Position, _ right: Position) -> Bool {
        for (index, key) in keys.enumerated() where index < left.values.count && index < right.values.count {
            switch SortOrder.compare(left.values[index], right.values[index]) {
            case .less: return key.ascending
            case .greater: return !key.ascending
            case .equal: continue
            }
        }
        return left.rowid < right.rowid
    }
}
