package import SluiceCore
import SluiceQuery

/// The result of a query as it was last delivered, kept up to date change by change.
///
/// An update costs about 0.1 ms for each object that may enter, leave or move, at any size of the result. For a condition or an order
/// through links, these objects are found backwards from the changed ones. DISTINCT and LIMIT keep all objects that meet the
/// condition, in order, at about 100 bytes each.
///
/// The query runs again, at the cost of `ReplicaQuery.run` and of comparing two lists, where an update would cost as much. This is so
/// if the affected objects exceed both `fewKeys` and one in `share` of the result, or if a change names only the class.
/// It also runs after every change unless its suffixes are SORTs, one DISTINCT, SORTs and one LIMIT, in this order.
package struct LiveQuery {
    package let query: ReplicaQuery
    private let arrangement: QueryArrangement?
    /// Classes whose objects can change the result.
    private let readTypes: Set<Int>
    /// `true` if the order depends on linked objects, so that an unchanged object can move.
    private let isOrderedByLinks: Bool
    /// Nil: the query is run after every change.
    private var affected: AffectedRows?
    /// The objects that the result is chosen from, in order; nil: all of the class.
    package private(set) var base: [Value]?
    private var places: [Value: Int64]?
    /// All that meet the condition, in the order of DISTINCT's values and then that in which it finds them; nil without DISTINCT.
    private var groups: OrderedKeys?
    /// The result before LIMIT. With DISTINCT it has the first of each group.
    private var members = OrderedKeys([])
    /// The version of the state that the result reflects.
    private var version: UInt64
    /// The number of times that the query was run in full.
    package private(set) var runs = 0

    /// `true` if changes are applied one by one.
    package var isFollowed: Bool { affected != nil }

    /// The number of affected objects up to which any result is updated object by object. Large results permit more.
    private static let fewKeys = 1_000
    private static let share = 64

    /// Runs the query for the first time.
    /// - Parameter base: the objects to choose from, each once, whose order counts as the table's does; nil: all of the class.
    package init(_ query: ReplicaQuery, over base: [Value]? = nil, on store: RowStore) throws(SluiceError) {
        self.query = query
        arrangement = query.bound.arrangement
        let ways = query.bound.ways
        readTypes = ways.types
        isOrderedByLinks = !query.bound.waysOfArrangement.isEmpty
        affected = arrangement == nil ? nil : try AffectedRows(ways, on: store)
        version = try store.version()
        try run(over: base, on: store)
    }

    private mutating func run(over base: [Value]?, on store: RowStore) throws(SluiceError) {
        runs += 1
        self.base = base
        places = base.map { Dictionary($0.enumerated().map { ($1, Int64($0)) }, uniquingKeysWith: { first, _ in first }) }
        func run(_ query: ReplicaQuery) throws(SluiceError) -> [Value] {
            if let base { try query.run(over: base, on: store) } else { try query.run(on: store) }
        }
        guard let arrangement else {
            members = OrderedKeys(try run(query))
            return
        }
        let found = try run(query.keepingSuffixes(arrangement.leading))
        guard let distinct = arrangement.distinct else {
            members = OrderedKeys(found)
            return
        }
        let graph = ReplicaGraph(store)
        let (keys, isFirst) = query.bound.grouped(found, by: distinct, in: graph)
        let firsts = Set(zip(keys, isFirst).filter(\.1).map(\.0))
        let sorts = query.bound.suffixes.dropFirst(arrangement.leading + 1).prefix { if case .sort = $0 { true } else { false } }
        members = OrderedKeys(query.bound.arranged(found.filter { firsts.contains($0) }, by: Array(sorts), in: graph))
        groups = OrderedKeys(keys)
        try graph.check()
    }

    // MARK: The result

    private var limit: Int { arrangement?.limit ?? .max }

    /// The keys of the result; O(result).
    package var keys: [Value] { members.count > limit ? Array(members.keys.prefix(limit)) : members.keys }
    package var count: Int { min(members.count, limit) }
    /// The key at an index; nil beyond the result. Some microseconds in a large result.
    package subscript(_ index: Int) -> Value? { index < limit ? members[index] : nil }
    /// The index of a key; nil if it is not in the result. Some microseconds in a large result.
    package func position(of key: Value) -> Int? { members.position(of: key).flatMap { $0 < limit ? $0 : nil } }

    // MARK: Following

    /// Returns `true` if `change` covers everything up to the state that `store` reads. Notice of a commit arrives shortly after it.
    package func isAll(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> Bool {
        let seen = try store.version()
        return change.version == seen || change.version == 0 && version == seen
    }

    /// Updates the result to the state that `store` reads.
    /// - Parameters:
    ///   - change: the commits since the last update, up to its version; with version 0, the changes of an open transaction so far.
    ///     If `store` reads a newer state, the query runs again.
    ///   - store: reads that state.
    /// - Returns: the difference of the results; nil if there is none.
    package mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> CollectionDiff? {
        let isAll = try isAll(change, on: store)
        version = try store.version()
        // Without all commits the change may lack one of a class that the query reads.
        if isAll, readTypes.isDisjoint(with: change.types.keys) { return nil }
        // Beyond the bound, one run of the query costs less than steps for single objects.
        let bound = max(LiveQuery.fewKeys, members.count / LiveQuery.share)
        // Called even if the query runs again below: the call also updates the kept links.
        let concerned = try affected?.rows(change, limit: bound, on: store)
        let changed = change.types[query.type] ?? TypeChange()
        if isAll, let concerned, let arrangement { return try follow(concerned, changed, arrangement, store) }
        let old = keys
        try run(over: base, on: store)
        let diff = CollectionDiff(from: old, to: keys) { changed.contains($0) }
        return diff.isEmpty ? nil : diff
    }

    /// - Parameters:
    ///   - concerned: the objects that may enter, leave or move.
    ///   - changed: those that are modified if they stay.
    private mutating func follow(
        _ concerned: Set<Value>, _ changed: TypeChange, _ arrangement: QueryArrangement, _ store: RowStore
    ) throws(SluiceError) -> CollectionDiff? {
        let graph = ReplicaGraph(store)
        let matcher = KeyMatcher(query, graph, store)
        var (leaving, entering): ([Value], [Value]) = ([], [])
        for key in concerned {
            // With DISTINCT, `members` has only the first of each group. `groups` has all that meet the condition.
            let was = (groups ?? members).contains(key)
            // An object outside of the given list never enters, even if it meets the condition.
            let isChosen = places.map { $0[key] != nil } ?? true
            let isNow = isChosen ? try matcher.matches(key) : false
            // An unchanged object can still move if the order depends on linked objects.
            if was == isNow, !changed.contains(key), !(isNow && isOrderedByLinks) { continue }
            if was { leaving.append(key) }
            if isNow { entering.append(key) }
        }
        if let distinct = arrangement.distinct {
            var order = KeyOrder(query, by: arrangement.grouping, places: places, graph: graph, store: store)
            (leaving, entering) = try regroup(leaving, entering, &order, distinct.count)
        }
        if leaving.isEmpty && entering.isEmpty { return nil }
        let count = members.count
        // Indices of the old list: they must be read before any removal.
        let before = leaving.compactMap { key in members.position(of: key).map { CollectionDiff.Place(key: key, index: $0) } }
        var order = KeyOrder(query, by: arrangement.last, places: places, graph: graph, store: store)
        let staying = try staying(before, entering: Set(entering), &order)
        for key in leaving where !staying.contains(key) { members.remove(key) }
        for key in entering where !staying.contains(key) { try LiveQuery.insert(key, in: &members, &order) }
        let after = entering.map { CollectionDiff.Place(key: $0, index: members.position(of: $0) ?? 0) }
        let all = CollectionDiff(before: before, after: after) { changed.contains($0) }
        let diff = all.limited(to: limit, from: count, to: members.count)
        return diff.isEmpty ? nil : diff
    }

    /// Returns the objects that stay between the same neighbours. One comparison with each side decides; an insertion takes a dozen.
    /// - Parameter touched: members that leave, or may have moved.
    private func staying(
        _ touched: [CollectionDiff.Place], entering: Set<Value>, _ order: inout KeyOrder
    ) throws(SluiceError) -> Set<Value> {
        let touched = touched.sorted { $0.index < $1.index }
        var staying: Set<Value> = []
        var start = 0
        while start < touched.count {
            // A run of adjacent touched objects. The neighbours on both sides are not touched, so they have kept their places.
            var end = start + 1
            while end < touched.count, touched[end].index == touched[end - 1].index + 1 { end += 1 }
            var previous = try neighbour(members.key(before: touched[start].key), &order)
            let next = try neighbour(members.key(after: touched[end - 1].key), &order)
            for place in touched[start..<end] where entering.contains(place.key) {
                let position = try order.position(of: place.key, isKept: true)
                guard previous.map({ order.precedes($0, position) }) ?? true, next.map({ order.precedes(position, $0) }) ?? true
                else { continue }
                staying.insert(place.key)
                previous = position
            }
            start = end
        }
        return staying
    }

    private func neighbour(_ key: Value?, _ order: inout KeyOrder) throws(SluiceError) -> KeyOrder.Position? {
        guard let key else { return nil }
        return try order.position(of: key, isKept: false)
    }

    private static func insert(_ key: Value, in keys: inout OrderedKeys, _ order: inout KeyOrder) throws(SluiceError) {
        // The new key is compared with a dozen others, so only its position is cached.
        let position = try order.position(of: key, isKept: true)
        try keys.insert(key) { other throws(SluiceError) in
            order.precedes(position, try order.position(of: other, isKept: false))
        }
    }

    /// Updates the groups of DISTINCT.
    /// - Parameters:
    ///   - leaving: objects that met the condition, with the values that they had.
    ///   - entering: those that meet it, with the values that they have.
    ///   - count: the number of leading values of the order that define a group.
    /// - Returns: those that leave the result and enter it; one that stays but may have moved does both.
    private mutating func regroup(
        _ leaving: [Value], _ entering: [Value], _ order: inout KeyOrder, _ count: Int
    ) throws(SluiceError) -> (leaving: [Value], entering: [Value]) {
        guard var groups else { return (leaving, entering) }
        // Leaves the local copy as the only reference, so that edits do not copy the list.
        self.groups = nil
        defer { self.groups = groups }
        var isFirst: [Value: Bool] = [:]
        for key in leaving {
            // The next key is of the same group, unless it is the first of another.
            if isFirst[key] ?? members.contains(key), let next = groups.key(after: key), !(isFirst[next] ?? members.contains(next)) {
                isFirst[next] = true
            }
            isFirst[key] = false
            groups.remove(key)
        }
        for key in entering {
            try LiveQuery.insert(key, in: &groups, &order)
            if let previous = groups.key(before: key), try order.agree(previous, key, in: count) {
                isFirst[key] = false
                continue
            }
            isFirst[key] = true
            if let next = groups.key(after: key), try order.agree(key, next, in: count) { isFirst[next] = false }
        }
        let touched = Set(leaving).union(entering)
        // A touched key that stays first both leaves and enters, because its values may have changed.
        let left = isFirst.filter { members.contains($0.key) && (!$0.value || touched.contains($0.key)) }
        let entered = isFirst.filter { $0.value && (!members.contains($0.key) || touched.contains($0.key)) }
        return (Array(left.keys), Array(entered.keys))
    }
}

/// Decides for single objects if they meet the condition of a query.
private struct KeyMatcher {
    private let plan: ReplicaPlan
    /// The compiled condition if SQLite cannot decide alone, because the condition reads other objects; otherwise nil.
    private let compiled: CompiledQuery?
    private let graph: ReplicaGraph

    init(_ query: ReplicaQuery, _ graph: ReplicaGraph, _ store: RowStore) {
        plan = ReplicaPlan(query, store)
        compiled = plan.needsGraph ? query.bound.compile() : nil
        self.graph = graph
    }

    func matches(_ key: Value) throws(SluiceError) -> Bool {
        guard let compiled else { return try plan.matches(key) }
        let matches = compiled.matches(key, in: graph)
        try graph.check()
        return matches
    }
}
