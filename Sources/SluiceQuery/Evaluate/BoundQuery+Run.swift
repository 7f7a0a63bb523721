package import SluiceCore

extension BoundQuery {
    /// Whether the condition holds for the row with a key; false when the graph has none.
    package func matches(_ key: Value, in graph: some ObjectGraph) -> Bool {
        guard let row = graph.row(key, of: type) else { return false }
        return matches(row, key: key, in: graph)
    }

    /// Whether the condition holds for a row of the type. Evaluates the tree; the hot path compiles.
    package func matches(_ row: Row, key: Value, in graph: some ObjectGraph) -> Bool {
        let object = GraphObject(type: type, content: .row(key: key, row))
        return GraphEvaluator(schema: schema, graph: graph).holds(condition, [object])
    }

    /// The keys of the rows that the query selects, in order: the graph's, or that of its SORTs; DISTINCT and LIMIT applied.
    ///
    /// Null, and what a null link leads to, sorts first. Consecutive SORTs merge, the later one deciding first. Sorting is stable.
    package func run(over graph: some ObjectGraph) -> [Value] {
        let compiled = compile()
        let selected = graph.keys(of: type).filter { compiled.matches($0, in: graph) }
        return arranged(selected, in: graph)
    }

    /// Applies the suffixes to keys of rows.
    func arranged(_ keys: [Value], in graph: some ObjectGraph) -> [Value] { arranged(keys, by: suffixes, in: graph) }

    /// Applies some of the suffixes to keys of rows: those that SQL has left, see `SQLSelection`.
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

    /// Puts keys of rows together that are equal in all paths, each group in the order that it had, the groups in the order of their values.
    /// - Returns: the keys so, and which are the first of their groups.
    package func grouped(_ keys: [Value], by paths: [BoundPath], in graph: some ObjectGraph) -> (keys: [Value], isFirst: [Bool]) {
        let rows = keys.map { values(of: paths, at: $0, in: graph) }
        let (places, isFirst) = Arrangement.groups(rows)
        return (places.map { keys[$0] }, isFirst)
    }
}

/// Orders of rows by tuples of values.
private enum Arrangement {
    /// - Returns: whether a row comes before another; of equal ones the earlier.
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

    /// The rows' places by their tuples, of equal ones the earlier first, and which of them are the first with their tuple.
    static func groups(_ rows: [[Value]]) -> (places: [Int], isFirst: [Bool]) {
        let ascending = rows.first.map { $0.map { _ in true } } ?? []
        let sorted = rows.indices.sorted { precedes($0, $1, rows, ascending) }
        let isFirst = sorted.indices.map { place in
            place == 0 || !zip(rows[sorted[place - 1]], rows[sorted[place]]).allSatisfy { SortOrder.compare($0, $1) == .equal }
        }
        return (sorted, isFirst)
    }
}
