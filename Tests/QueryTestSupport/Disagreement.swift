package import SluiceCore
package import SluiceQuery
package import TestSupport

/// A query and rows on which two evaluations disagree, to be made small.
package struct Disagreement: CustomStringConvertible {
    package var query: BoundQuery
    package var sample: RandomGraph
    package var key: Value
    package let differ: (BoundQuery, Value, RandomGraph) -> Bool

    package init(query: BoundQuery, sample: RandomGraph, key: Value, differ: @escaping (BoundQuery, Value, RandomGraph) -> Bool) {
        self.query = query
        self.sample = sample
        self.key = key
        self.differ = differ
    }

    private var exists: Bool { differ(query, key, sample) }

    package func shrunk() -> Disagreement {
        var small = self
        while let smaller = small.smaller.first(where: { $0.exists }) { small = smaller }
        return small
    }

    private var smaller: [Disagreement] {
        var candidates: [Disagreement] = []
        if let tree = try? Query.parse(query.canonicalText).tree.root {
            for part in Disagreement.parts(tree) {
                guard let bound = try? Query.parse(part.canonicalText).bind(to: query.type, in: query.schema) else { continue }
                candidates.append(Disagreement(query: bound, sample: sample, key: key, differ: differ))
            }
        }
        // Many rows at once first: each attempt may cost a database.
        for size in [sample.rows.count / 2, sample.rows.count / 4, sample.rows.count / 8] where size > 1 {
            for start in stride(from: 0, to: sample.rows.count, by: size) {
                var fewer = self
                fewer.sample.rows.removeSubrange(start..<min(start + size, sample.rows.count))
                candidates.append(fewer)
            }
        }
        for index in sample.rows.indices {
            var fewer = self
            fewer.sample.rows.remove(at: index)
            candidates.append(fewer)
            for (property, value) in sample.rows[index].row.values.enumerated() {
                guard let value, !value.isNull, sample.schema[sample.rows[index].type]?.primaryKey != property else { continue }
                var emptier = self
                emptier.sample.rows[index].row[property] = .null
                candidates.append(emptier)
            }
        }
        return candidates
    }

    private static func parts(_ query: SyntaxQuery) -> [SyntaxQuery] {
        switch query.kind {
        case .and(let parts), .or(let parts): parts
        case .not(let inner): [inner]
        case .constant, .compare: []
        }
    }

    package var description: String {
        let graph = MemoryGraph(schema: sample.schema, rows: sample.rows)
        let rows = sample.rows.map { row in
            let type = sample.schema[row.type]
            let values = row.row.values.enumerated().compactMap { index, value in
                value.flatMap { $0.isNull ? nil : "\(type?.properties[index].name ?? "?") = \($0)" }
            }
            return "  \(row.type): \(values.joined(separator: ", "))"
        }
        return "  \(query.canonicalText)\n  on \(key): the tree says \(query.matches(key, in: graph)), compiled "
            + "\(query.compile().matches(key, in: graph)), as a predicate \(query.predicate.map { "\($0.bound)" } ?? "none")\n"
            + "  \(query.type.properties.map { "\($0.name): \($0.type) \($0.collection)" })\n" + rows.joined(separator: "\n")
    }
}
