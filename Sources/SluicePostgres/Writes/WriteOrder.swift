package import SluiceCore

/// A foreign key between two tables of the app, or within one.
package struct ForeignKey: Hashable, Sendable {
    /// The constraint's name.
    package var name: String
    /// The schema of its table.
    package var schema: String
    /// The referring class, and the indices of its properties.
    package var child: String
    package var childProperties: [Int]
    /// The class referred to, and the indices of its properties.
    package var parent: String
    package var parentProperties: [Int]
    package var isDeferrable: Bool

    package init(
        name: String, schema: String = "public", child: String, _ childProperties: [Int], parent: String, _ parentProperties: [Int],
        isDeferrable: Bool = false
    ) {
        self.name = name
        self.schema = schema
        self.child = child
        self.childProperties = childProperties
        self.parent = parent
        self.parentProperties = parentProperties
        self.isDeferrable = isDeferrable
    }
}

/// The row of an object that a changeset names, before and after the changeset. Both are nil if no row is written.
package struct RowImages: Sendable {
    package var type: String
    package var before: Row?
    package var after: Row?

    package init(type: String, before: Row?, after: Row?) {
        self.type = type
        self.before = before
        self.after = after
    }
}

/// The order in which the rows of one changeset satisfy foreign keys.
///
/// A row is written after the rows that it refers to, and deleted after the rows that refer to it. Otherwise the order of the
/// changeset stays, on which unique constraints may depend. O(rows × foreign keys).
package struct WriteOrder: Sendable {
    /// The indices of the rows, in the order of writing.
    package private(set) var indices: [Int] = []
    /// Foreign keys to check at the commit, because no order satisfies them.
    package private(set) var deferred: [ForeignKey] = []
    /// `true` if no order satisfies a foreign key that cannot be deferred.
    package private(set) var isImpossible = false

    private struct Edge: Hashable {
        var first: Int
        var second: Int
        var key: Int
    }

    package init(_ rows: [RowImages], _ keys: [ForeignKey]) {
        var edges: Set<Edge> = []
        for (number, key) in keys.enumerated() { Self.add(key, number, rows, &edges) }
        sort(rows.count, edges, keys)
    }

    /// Adds an edge from each row that must be written first.
    private static func add(_ key: ForeignKey, _ number: Int, _ rows: [RowImages], _ edges: inout Set<Edge>) {
        var made: [[Value]: [Int]] = [:]
        var gone: [[Value]: [Int]] = [:]
        for (index, row) in rows.enumerated() where row.type == key.parent {
            let (before, after) = (tuple(row.before, key.parentProperties), tuple(row.after, key.parentProperties))
            // A parent whose key stays the same constrains no order.
            guard before != after else { continue }
            if let after { made[after, default: []].append(index) }
            if let before { gone[before, default: []].append(index) }
        }
        guard !made.isEmpty || !gone.isEmpty else { return }
        for (index, row) in rows.enumerated() where row.type == key.child {
            let (before, after) = (tuple(row.before, key.childProperties), tuple(row.after, key.childProperties))
            // A child follows a parent that receives the key.
            for parent in after.flatMap({ made[$0] }) ?? [] where parent != index {
                edges.insert(Edge(first: parent, second: index, key: number))
            }
            guard before != after else { continue }
            // A child that stops referring precedes the parent that loses the key.
            for parent in before.flatMap({ gone[$0] }) ?? [] where parent != index {
                edges.insert(Edge(first: index, second: parent, key: number))
            }
        }
    }

    /// Returns the values of some properties; nil without a row, or with a null, which refers to nothing (MATCH SIMPLE).
    package static func tuple(_ row: Row?, _ properties: [Int]) -> [Value]? {
        guard let row else { return nil }
        let values = properties.map { row[$0] ?? .null }
        return values.contains { $0.isNull } ? nil : values
    }

    /// Sorts the rows so that each follows its predecessors in the graph and otherwise keeps its place.
    private mutating func sort(_ count: Int, _ edges: Set<Edge>, _ keys: [ForeignKey]) {
        var edges = edges
        if let order = Self.sorted(count, edges) { return indices = order }
        // Only rows on a cycle, or between two, need a deferred check.
        let rest = Self.onCycles(count, edges)
        let cyclic = edges.filter { rest.contains($0.first) && rest.contains($0.second) && keys[$0.key].isDeferrable }
        deferred = Set(cyclic.map(\.key)).sorted().map { keys[$0] }
        let numbers = Set(cyclic.map(\.key))
        edges = edges.filter { !numbers.contains($0.key) }
        if let order = Self.sorted(count, edges) { return indices = order }
        isImpossible = true
        // The remaining cycles are cut, so that all other rows are still in order.
        let impossible = Self.onCycles(count, edges)
        edges = edges.filter { !(impossible.contains($0.first) && impossible.contains($0.second)) }
        indices = Self.sorted(count, edges) ?? Array(0..<count)
    }

    /// Returns the rows in topological order; nil if there is a cycle.
    private static func sorted(_ count: Int, _ edges: Set<Edge>) -> [Int]? {
        var (waits, followers) = degrees(count, edges)
        // Rows are taken in their own order. A row that waited is taken as soon as it is free.
        var order: [Int] = []
        order.reserveCapacity(count)
        for start in 0..<count where waits[start] == 0 {
            var free = [start]
            while let row = free.popLast() {
                guard waits[row] == 0 else { continue }
                waits[row] = -1
                order.append(row)
                for next in (followers[row] ?? []).sorted(by: >) {
                    waits[next] -= 1
                    // The outer loop reaches a later row that is free by now.
                    if waits[next] == 0, next < start { free.append(next) }
                }
            }
        }
        return order.count == count ? order : nil
    }

    /// Returns the rows that a topological sort reaches neither from its start nor from its end.
    private static func onCycles(_ count: Int, _ edges: Set<Edge>) -> Set<Int> {
        let reversed = Set(edges.map { Edge(first: $0.second, second: $0.first, key: $0.key) })
        return stuck(count, edges).intersection(stuck(count, reversed))
    }

    /// Returns the rows that a topological sort never reaches.
    private static func stuck(_ count: Int, _ edges: Set<Edge>) -> Set<Int> {
        var (waits, followers) = degrees(count, edges)
        var free = (0..<count).filter { waits[$0] == 0 }
        var left = Set(0..<count)
        while let row = free.popLast() {
            left.remove(row)
            for next in followers[row] ?? [] {
                waits[next] -= 1
                if waits[next] == 0 { free.append(next) }
            }
        }
        return left
    }

    /// Returns the number of predecessors of each row, and its successors. Parallel edges count once.
    private static func degrees(_ count: Int, _ edges: Set<Edge>) -> (waits: [Int], followers: [Int: Set<Int>]) {
        var followers: [Int: Set<Int>] = [:]
        var waits = Array(repeating: 0, count: count)
        for edge in edges where followers[edge.first, default: []].insert(edge.second).inserted { waits[edge.second] += 1 }
        return (waits, followers)
    }
}
