package import SluiceCore

/// A foreign key between two tables of the app, or of one to itself.
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

/// An object that a changeset names, before and after the changeset. Both are nil where no row is written.
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
/// A row is written after the rows that it refers to, and taken away after the rows that refer to it. Otherwise the order of the
/// changeset stays, on which unique constraints may depend. O(rows × foreign keys).
package struct WriteOrder: Sendable {
    /// Indices of the rows, in the order to write them.
    package private(set) var indices: [Int] = []
    /// Foreign keys to be checked at commit, since no order satisfies them.
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

    /// Adds an edge from each row that has to be written first.
    private static func add(_ key: ForeignKey, _ number: Int, _ rows: [RowImages], _ edges: inout Set<Edge>) {
        var made: [[Value]: [Int]] = [:]
        var gone: [[Value]: [Int]] = [:]
        for (index, row) in rows.enumerated() where row.type == key.parent {
            let (before, after) = (tuple(row.before, key.parentProperties), tuple(row.after, key.parentProperties))
            guard before != after else { continue }
            if let after { made[after, default: []].append(index) }
            if let before { gone[before, default: []].append(index) }
        }
        guard !made.isEmpty || !gone.isEmpty else { return }
        for (index, row) in rows.enumerated() where row.type == key.child {
            let (before, after) = (tuple(row.before, key.childProperties), tuple(row.after, key.childProperties))
            for parent in after.flatMap({ made[$0] }) ?? [] where parent != index {
                edges.insert(Edge(first: parent, second: index, key: number))
            }
            guard before != after else { continue }
            for parent in before.flatMap({ gone[$0] }) ?? [] where parent != index {
                edges.insert(Edge(first: index, second: parent, key: number))
            }
        }
    }

    /// - Returns: nil without a row, or with a null, which refers to nothing (MATCH SIMPLE).
    package static func tuple(_ row: Row?, _ properties: [Int]) -> [Value]? {
        guard let row else { return nil }
        let values = properties.map { row[$0] ?? .null }
        return values.contains { $0.isNull } ? nil : values
    }

    /// Sorts the rows so that each comes after the rows before it in the graph, and as early as it was.
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
        let impossible = Self.onCycles(count, edges)
        edges = edges.filter { !(impossible.contains($0.first) && impossible.contains($0.second)) }
        indices = Self.sorted(count, edges) ?? Array(0..<count)
    }

    /// - Returns: nil when there is a cycle.
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
                    // A later row that is free by now has its own turn.
                    if waits[next] == 0, next < start { free.append(next) }
                }
            }
        }
        return order.count == count ? order : nil
    }

    /// The rows that a topological sort reaches neither from its beginning nor from its end.
    private static func onCycles(_ count: Int, _ edges: Set<Edge>) -> Set<Int> {
        let reversed = Set(edges.map { Edge(first: $0.second, second: $0.first, key: $0.key) })
        return stuck(count, edges).intersection(stuck(count, reversed))
    }

    /// The rows that a topological sort never reaches.
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

    private static func degrees(_ count: Int, _ edges: Set<Edge>) -> (waits: [Int], followers: [Int: Set<Int>]) {
        var followers: [Int: Set<Int>] = [:]
        var waits = Array(repeating: 0, count: count)
        for edge in edges where followers[edge.first, default: []].insert(edge.second).inserted { waits[edge.second] += 1 }
        return (waits, followers)
    }
}
