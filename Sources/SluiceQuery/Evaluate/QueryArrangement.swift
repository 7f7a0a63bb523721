package import SluiceCore

/// What the suffixes of a query come to, where they are SORTs, at most one DISTINCT, more SORTs and at most one LIMIT, in this order.
package struct QueryArrangement: Sendable {
    /// The order in which DISTINCT finds the objects, the most significant first; of those that are equal the table's own decides.
    package var first: [BoundSuffix.Key] = []
    package var distinct: [BoundPath]?
    /// The order in the end, in the same way.
    package var last: [BoundSuffix.Key] = []
    package var limit: Int?
    /// How many suffixes come before DISTINCT and LIMIT.
    package fileprivate(set) var leading = 0

    /// An order that puts together what DISTINCT takes for equal, and that in which it finds it.
    package var grouping: [BoundSuffix.Key] { (distinct ?? []).map { BoundSuffix.Key(path: $0, ascending: true) } + first }
}

extension BoundQuery {
    /// Nil when the suffixes are others, or in another order.
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

    /// The query with the first so many of its suffixes.
    package func keepingSuffixes(_ count: Int) -> BoundQuery {
        BoundQuery(
            type: type, schema: schema, condition: condition, suffixes: Array(suffixes.prefix(count)),
            tree: SyntaxTree(root: tree.root, suffixes: Array(tree.suffixes.prefix(count))), arguments: arguments)
    }

    /// What SORT and DISTINCT read of an object: one value for each path, null where there is no object.
    package func values(of paths: [BoundPath], at key: Value, in graph: some ObjectGraph) -> [Value] {
        guard let row = graph.row(key, of: type) else { return paths.map { _ in .null } }
        let object = GraphObject(type: type, content: .row(key: key, row))
        let evaluator = GraphEvaluator(schema: schema, graph: graph)
        return paths.map { evaluator.values($0, [object]).first ?? .null }
    }
}
