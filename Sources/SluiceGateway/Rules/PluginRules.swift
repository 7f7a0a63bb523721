import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceQuery

/// The plugin chain in use, as the pipeline's rules. A class that no plugin grants is denied, except in development mode.
struct PluginRules: Rules {
    let generations: RuleGenerations
    let authority: any SchemaAuthority
    let functions: RuleFunctions

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        let isDevelopment = authority.current().isDevelopment
        var asking = user
        let generation = generations.current
        asking.functions = try await functions.results(of: generation.app.ruleCalls, for: user, generation: generation.number)
        guard let plan = try await generations.ask({ [asking] in try await $0.openSession(user: asking, types: types) }) else {
            let allowed: TypePlan = isDevelopment ? .open : .denied
            return SessionPlan(types: Dictionary(types.map { ($0, allowed) }, uniquingKeysWith: { first, _ in first }))
        }
        var permitted = SessionPlan(types: plan.types.mapValues { $0.grants || isDevelopment ? $0 : .denied })
        permitted.functions = asking.functions
        return permitted
    }

    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        let asked = queries.map { TypeQuery(type: $0.type, query: $0.query) }
        let narrowed = try await generations.ask { try await $0.checkSubscription(user: user, queries: asked) }
        return try queries.map { query in
            let cuts = narrowed.filter { $0.type == query.type }.map(\.query)
            // Each condition must parse by itself. Otherwise unbalanced parentheses in one could void the condition beside it.
            if cuts.count > 1 { for cut in cuts { _ = try Query.parse(cut) } }
            return cuts.isEmpty ? "TRUEPREDICATE" : cuts.map { "(\($0))" }.joined(separator: " AND ")
        }
    }

    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] {
        let schema = authority.current().schema
        return await generations.ask { await $0.checkWrites(user: user, writes: writes, schema: schema) }
    }

    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? {
        let schema = authority.current().schema
        return try await generations.ask { chain in
            chain.judgesIngest ? try await chain.ingest(objects, schema: schema) : nil
        }
    }
}
