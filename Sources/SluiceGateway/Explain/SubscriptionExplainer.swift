package import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceQuery
import SluiceValues
import Synchronization

/// Explains a user's subscription: the role, the conditions of the rules, the index form, the SQL, and the number of rows.
struct SubscriptionExplainer: Sendable {
    /// The maximum number of rows that are counted exactly. Above it, the explanation shows PostgreSQL's estimate.
    private static let countedRows = 100_000

    let users: any UserDirectory
    let services: SessionServices
    /// Returns the tables of the classes by name.
    let tables: @Sendable () -> [String: SQLTable]

    /// - Parameters:
    ///   - name: The user's id or e-mail.
    ///   - text: A query that a client may subscribe to.
    /// - Throws: `userNotFound`, `unknownType`, or the error that rejects the subscription.
    func explain(user name: String, type: String, query text: String) async throws -> SubscriptionExplanation {
        let app = services.authority.current()
        let model = try app.schema.requireType(type)
        let account = try await users.account(calledOrMailed: name)
        try Subscription.checkSize(ofSet: [text])
        let asked = try Subscription.check(
            type: model, query: try Query.parse(text), arguments: [], in: app.schema, fields: app.fields)
        let plan = try await services.rules.openSession(user: account.context, types: [type])[type]
        let seen = asked.hiding(plan.hidden(of: model))
        let question = [(type, asked.canonicalText)]
        let narrowed = try await services.rules.checkSubscription(user: account.context, queries: question).first ?? "TRUEPREDICATE"
        let cut = Predicate.and(seen, try Query.parse(narrowed).predicate(on: model, in: app.schema))
        let whole = Predicate.and(cut, try Query.parse(plan.read).predicate(on: model, in: app.schema))
        var explanation = SubscriptionExplanation(
            user: account.email ?? account.id, type: model, asked: asked.canonicalText, plan: plan, narrowed: narrowed,
            whole: whole.canonicalText,
            sql: QuerySQL(
                try Query.parse(whole.canonicalText).bind(to: model, in: app.schema), .postgres, tables: tables()),
            index: SubscriptionExplanation.IndexForm(
                entries: whole.indexForm(indexedProperty: app.fields.indexedProperty(of: model)), field: app.fields.indexed))
        (explanation.expected, explanation.counted) = try await count(whole, model)
        return explanation
    }

    /// Returns the one class that fits a query.
    ///
    /// - Throws: `badRequest` if several classes fit, or none.
    func onlyType(for text: String) throws -> String {
        let query = try Query.parse(text)
        let schema = services.authority.current().schema
        let fitting = schema.types.filter { type in
            type.kind == .topLevel && (try? query.predicate(on: type, in: schema)) != nil
        }
        guard let type = fitting.first, fitting.count == 1 else {
            let names = fitting.map(\.name).joined(separator: ", ")
            throw SluiceError(
                .badRequest, fitting.isEmpty ? "No class has the properties of the query." : "The query fits several classes: \(names).",
                fix: "Name the class: --type, or type=….")
        }
        return type.name
    }

    private func count(_ predicate: Predicate, _ type: ObjectType) async throws -> (expected: Int, counted: Int?) {
        let sink = CountSink()
        do {
            _ = try await services.snapshots.read([SnapshotQuery(type: type, predicate: predicate)], into: sink)
        } catch let error as SluiceError where error == CountSink.full {
            return (sink.counts.expected, nil)
        }
        return sink.counts
    }

    /// Counts the rows of a snapshot.
    private final class CountSink: SnapshotSink {
        /// Ends the read, which only an error can do.
        static let full = SluiceError(.limitsExceeded, "A count ended after \(SubscriptionExplainer.countedRows) rows.")

        private let state = Mutex<(expected: Int, counted: Int)>((0, 0))

        var counts: (expected: Int, counted: Int?) { state.withLock { ($0.expected, $0.counted) } }

        /// Accepts any snapshot, as the count needs no position in the log.
        func begin(_ start: SnapshotStart) async throws -> Bool { true }

        var needsEstimate: Bool { true }

        func expect(_ rows: UInt64) async throws { state.withLock { $0.expected = Int(clamping: rows) } }

        func take(_ rows: [RowRef], of buffer: RowBuffer, query: Int, isInOrder: Bool) async throws {
            let count = state.withLock { state in
                state.counted += rows.count
                return state.counted
            }
            if count > SubscriptionExplainer.countedRows { throw Self.full }
        }
    }
}

struct SubscriptionExplanation: Sendable {
    /// The cost of a change of the class for this subscription.
    private enum Cost: String {
        /// Zero: no row can match.
        case nothing
        /// The gateway tests only changes of rows with certain values of the indexed field.
        case keyed
        /// The gateway tests every change of the class.
        case unkeyed
    }

    /// The entries of the condition in the predicate index.
    struct IndexForm: Sendable {
        var entries: [IndexEntry]
        /// The indexed queryable field; nil if the app has none.
        var field: String?
    }

    var user: String
    var type: ObjectType
    var asked: String
    var plan: TypePlan
    var narrowed: String
    var whole: String
    var sql: QuerySQL
    var index: IndexForm
    var expected = 0
    var counted: Int?

    private var entries: [IndexEntry] { index.entries }

    private var cost: Cost { entries.isEmpty ? .nothing : entries.contains { $0.key == nil } ? .unkeyed : .keyed }

    private var hidden: [String] { plan.hidden(of: type).sorted().map { type.properties[$0].name } }

    private func condition(_ entry: IndexEntry) -> String { Predicate(type: type, bound: entry.residual).canonicalText }

    /// The maximum number of index entries in the text.
    private static let shownEntries = 20

    /// A heading for each part, with its content indented below.
    var lines: [String] {
        var lines = ["asked", "    \(asked)", "role", "    \(plan.role), which reads \(plan.read)"]
        if !hidden.isEmpty { lines.append("    without the fields \(hidden.joined(separator: ", ")), which count as null in the query") }
        if narrowed != "TRUEPREDICATE" { lines += ["narrowed by plugins", "    \(narrowed)"] }
        lines += ["condition", "    \(whole)", "PostgreSQL"] + sql.lines.map { "    \($0)" }
        lines.append("index form" + (index.field.map { ", by \($0)" } ?? ", without an indexed field"))
        for entry in entries.prefix(Self.shownEntries) {
            lines.append("    \(entry.key.map { "key \(ExtendedJSON.json($0).text)" } ?? "every row"): \(condition(entry))")
        }
        if entries.count > Self.shownEntries { lines.append("    … and \(entries.count - Self.shownEntries) more") }
        lines += ["rows", "    " + (counted.map { "\($0)" } ?? "about \(expected)"), "cost of a change"]
        switch cost {
        case .nothing: lines.append("    nothing: no row satisfies it")
        case .keyed:
            lines.append("    keyed: tested for \(entries.count) value\(entries.count == 1 ? "" : "s") of \(index.field ?? "") only")
        case .unkeyed: lines.append("    unkeyed: every change of \(type.name) is tested, and all its partitions are read")
        }
        return lines
    }

    /// The explanation as JSON:
    /// `{"user", "type", "query", "rules": {"role", "read", "hidden_fields"}, "narrowed", "condition", "postgres": {"sql", …},`
    /// `"index": [{"key", "residual"}], "rows": {"expected", "counted": number or null}, "cost", "text": [line]}`
    var json: JSON {
        [
            "user": .string(user), "type": .string(type.name), "query": .string(asked),
            "rules": [
                "role": .string(plan.role), "read": .string(plan.read), "hidden_fields": .array(hidden.map { .string($0) }),
            ],
            "narrowed": .string(narrowed), "condition": .string(whole), "postgres": sql.json,
            "index": .array(entries.map { ["key": $0.key.map { ExtendedJSON.json($0) } ?? "*", "residual": .string(condition($0))] }),
            "rows": ["expected": .int(Int64(expected)), "counted": counted.map { .int(Int64($0)) } ?? .null],
            "cost": .string(cost.rawValue), "text": .array(lines.map { .string($0) }),
        ]
    }
}

extension Schema {
    /// Returns the class of a name.
    ///
    /// - Throws: `unknownType` with the nearest name, or all names.
    package func requireType(_ name: String) throws(SluiceError) -> ObjectType {
        if let type = self[name] { return type }
        let near = Suggestion.nearest(to: name, in: types.map(\.name))
        throw SluiceError(
            .unknownType, "The schema has no class '\(name)'.",
            fix: near.map { "Did you mean '\($0)'?" } ?? "It has \(types.map(\.name).joined(separator: ", ")).")
    }
}
