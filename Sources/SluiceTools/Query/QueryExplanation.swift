package import SluiceCore
package import SluiceGateway
package import SluiceQuery
package import SluiceValues

/// The static properties of a query: canonical text, tree, SQL and index form.
package struct QueryExplanation: Sendable {
    package var canonical: String
    package var tree: String
    package var postgres: QuerySQL
    package var sqlite: QuerySQL
    /// The index form of the subscription, or the error that rejects the subscription.
    package var index: Result<[IndexEntry], SluiceError>
    private var type: ObjectType
    private var indexed: String?

    /// - Throws: The errors of the query language. Errors of a subscription alone are part of `index`.
    package init(_ text: String, _ tool: QueryTool, _ fields: QueryableFields) throws(SluiceError) {
        let query = try tool.bind(text)
        (type, indexed) = (tool.type, fields.indexed)
        canonical = query.canonicalText
        tree = query.explanation
        postgres = QuerySQL(query, .postgres)
        sqlite = QuerySQL(query, .sqlite)
        index = Result { () throws(SluiceError) in
            try tool.check(text, fields).indexForm(indexedProperty: fields.indexedProperty(of: tool.type))
        }
    }

    // MARK: As text

    /// The maximum number of index entries in the text.
    private static let shownEntries = 20

    /// The explanation as text: a heading for each part, with its content indented below.
    package var text: String {
        var lines = ["canonical text", "    \(canonical)", "tree, with types"] + tree.split(separator: "\n").map { "    \($0)" }
        lines += ["PostgreSQL"] + postgres.lines.map { "    \($0)" }
        lines += ["SQLite"] + sqlite.lines.map { "    \($0)" }
        lines.append("index form" + (indexed.map { ", by \($0)" } ?? ", without an indexed field"))
        switch index {
        case .failure(let error):
            lines.append("    none, as it cannot be subscribed to: \(error.code.name) (\(error.code.rawValue)): \(error.sentence)")
        case .success(let entries):
            lines += entries.prefix(QueryExplanation.shownEntries).map { "    \(name($0)): \(condition($0))" }
            let more = entries.count - QueryExplanation.shownEntries
            if more > 0 { lines.append("    … and \(more) more") }
            if entries.isEmpty { lines.append("    no entry: no row satisfies it") }
        }
        return lines.joined(separator: "\n")
    }

    private func name(_ entry: IndexEntry) -> String { entry.key.map { "key \(ExtendedJSON.json($0).text)" } ?? "every row" }

    private func condition(_ entry: IndexEntry) -> String { Predicate(type: type, bound: entry.residual).canonicalText }

    // MARK: As JSON

    /// The explanation as JSON: `{"ok": true, "canonical": …, "tree": …, "postgres": …, "sqlite": …, "index": …}`. The index form of a
    /// query that cannot be subscribed to is `{"ok": false, …}`, as for any error.
    package var answer: JSON {
        let entries: JSON =
            switch index {
            case .failure(let error): error.answer
            case .success(let entries):
                .array(entries.map { ["key": $0.key.map { ExtendedJSON.json($0) } ?? "*", "residual": .string(condition($0))] })
            }
        return [
            "ok": true, "canonical": .string(canonical), "tree": .string(tree), "postgres": postgres.json,
            "sqlite": sqlite.json, "index": entries,
        ]
    }
}

extension SluiceError {
    /// The message without the position.
    fileprivate var sentence: String { QueryErrorParts(self)?.sentence ?? message }
}
