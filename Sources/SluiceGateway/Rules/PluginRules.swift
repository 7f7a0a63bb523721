import SluiceCore
import SluicePipeline
import SluicePluginHost

/// The plugin chain in use as the pipeline's rules. No answer is a denial, save in development mode without any rule plugin.
struct PluginRules: Rules {
    let generations: RuleGenerations
    let authority: any SchemaAuthority

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        if let plan = try await generations.ask({ try await $0.openSession(user: user, types: types) }) { return plan }
        let allowed: TypePlan = authority.current().isDevelopment ? .open : .denied
        return SessionPlan(types: Dictionary(types.map { ($0, allowed) }, uniquingKeysWith: { first, _ in first }))
    }

    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        let asked = queries.map { TypeQuery(type: $0.type, query: $0.query) }
        let narrowed = try await generations.ask { try await $0.checkSubscription(user: user, queries: asked) }
        return queries.map { query in
            let cuts = narrowed.filter { $0.type == query.type }.map { "(\($0.query))" }
            return cuts.isEmpty ? "TRUEPREDICATE" : cuts.joined(separator: " AND ")
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
