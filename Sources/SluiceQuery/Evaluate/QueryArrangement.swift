package import SluiceCore

/// The suffixes of a query as SORTs, at most one DISTINCT, more SORTs and at most one LIMIT, in this order.
package struct QueryArrangement: Sendable {
    /// The order in which DISTINCT reads the objects, the most significant key first. Ties are in the table's order.
    package var first: [BoundSuffix.Key] = []
    package var distinct: [BoundPath]?
    /// The final order, in the same form.
    package var last: [BoundSuffix.Key] = []
    package var limit: Int?
    /// The number of suffixes before DISTINCT and LIMIT.
    package fileprivate(set) var leading = 0

    /// An order that groups objects equal for DISTINCT, each group in the order in which DISTINCT reads it.
    package var grouping: [BoundSuffix.Key] { (distinct ?? []).map { BoundSuffix.Key(path: $0, ascending: true) } + first }
}

extension BoundQuery {
    /// The query's arrangement, or nil for other suffixes or another order.
    package var arrangement: QueryArrangement? {
        var arrangement = QueryArrangement()
        for suffix in suffixes {
            if arrangement.limit != nil { return nil }
            switch suffix {
            case .sort(let keys):
                arrangement.last = keys + arrangement.last
                if arrangement.distinct == nil {
                    arrangement.first = arrangement.last
                    arrangement.leading += 1
                }
            case .distinct(let paths):
                if arrangement.distinct != nil { return nil }
                arrangement.distinct = paths
            case .limit(let count): arrangement.limit = count
            }
        }
        return arrangement
    }

    /// Returns the query with the first `count` suffixes.
    package func keepingSuffixes(_ count: Int) -> BoundQuery {
        BoundQuery(
            type: type, schema: schema, condition: condition, suffixes: Array(suffixes.prefix(count)),
            tree: SyntaxTree(root: tree.root, suffixes: Array(tree.suffixes.prefix(count))), arguments: arguments)
    }

    /// Returns the values that SORT and DISTINCT read of an object: one for each path, null if there is no object.
    package func values(of paths: [BoundPath], at key: Value, in graph: some ObjectGraph) -> [Value] {
        guard let row = graph.row(key, of: type) else { return paths.map { _ in .null } }
        let object = GraphObject(type: type, content: .row(key: key, row))
        let evaluator = GraphEvaluator(schema: schema, graph: graph)
        return paths.map { evaluator.values($0, [object]).first ?? .null }
    }
}
