package import SluiceCore

extension BoundQuery {
    /// `true` if the condition holds for the row with the key. `false` if the graph has no such row.
    package func matches(_ key: Value, in graph: some ObjectGraph) -> Bool {
        guard let row = graph.row(key, of: type) else { return false }
        return matches(row, key: key, in: graph)
    }

    /// `true` if the condition holds for a row of the class. It evaluates the tree; the hot path uses `compile()`.
    package func matches(_ row: Row, key: Value, in graph: some ObjectGraph) -> Bool {
        let object = GraphObject(type: type, content: .row(key: key, row))
        return GraphEvaluator(schema: schema, graph: graph).holds(condition, [object])
    }

    /// Returns the keys of the selected rows in the graph's order, with SORT, DISTINCT and LIMIT applied.
    ///
    /// Null, and values behind a null link, sort first. Consecutive SORTs merge, and the later one takes precedence. Sorting is stable.
    package func run(over graph: some ObjectGraph) -> [Value] {
        let compiled = compile()
        let selected = graph.keys(of: type).filter { compiled.matches($0, in: graph) }
        return arranged(selected, in: graph)
    }

    /// Applies the suffixes to keys of rows.
    func arranged(_ keys: [Value], in graph: some ObjectGraph) -> [Value] { arranged(keys, by: suffixes, in: graph) }

    /// Applies the suffixes that SQL did not apply to keys of rows, see `SQLSelection`.
    package func arranged(_ keys: [Value], by suffixes: [BoundSuffix], in graph: some ObjectGraph) -> [Value] {
        suffixes.reduce(keys) { keys, suffix in
            switch suffix {
            case .limit(let count): return Array(keys.prefix(count))
            case .sort(let sortKeys):
                let paths = sortKeys.map(\.path)
                let rows = keys.map { values(of: paths, at: $0, in: graph) }
                let directions = sortKeys.map(\.ascending)
                return keys.indices.sorted { Arrangement.precedes($0, $1, rows, directions) }.map { keys[$0] }
            case .distinct(let paths):
                let (places, isFirst) = Arrangement.groups(keys.map { values(of: paths, at: $0, in: graph) })
                return zip(places, isFirst).filter(\.1).map(\.0).sorted().map { keys[$0] }
            }
        }
    }

    /// Groups keys of rows that are equal in all paths. Each group keeps its order, and the groups are in the order of their values.
    /// - Returns: The keys in that order, and a flag for the first of each group.
    package func grouped(_ keys: [Value], by paths: [BoundPath], in graph: some ObjectGraph) -> (keys: [Value], isFirst: [Bool]) {
        let rows = keys.map { values(of: paths, at: $0, in: graph) }
        let (places, isFirst) = Arrangement.groups(rows)
        return (places.map { keys[$0] }, isFirst)
    }
}

/// Orders of rows by tuples of values.
private enum Arrangement {
    /// - Returns: `true` if a row precedes another. Equal rows keep their order.
    static func precedes(_ left: Int, _ right: Int, _ rows: [[Value]], _ ascending: [Bool]) -> Bool {
        for (index, isAscending) in ascending.enumerated() {
            switch SortOrder.compare(rows[left][index], rows[right][index]) {
            case .less: return isAscending
            case .greater: return !isAscending
            case .equal: continue
            }
        }
        return left < right
    }

    /// Returns the rows' places by their tuples, and a flag for the first place of each tuple. Equal rows keep their order.
    static func groups(_ rows: [[Value]]) -> (places: [Int], isFirst: [Bool]) {
        let ascending = rows.first.map { $0.map { _ in true } } ?? []
        let sorted = rows.indices.sorted { precedes($0, $1, rows, ascending) }
        let isFirst = sorted.indices.map { place in
            place == 0 || !zip(rows[sorted[place - 1]], rows[sorted[place]]).allSatisfy { SortOrder.compare($0, $1) == .equal }
        }
        return (sorted, isFirst)
    }
}
