import SluiceCore
import SluicePipeline
import SluicePluginHost

/// The plugin chain as the pipeline's rules. No answer is a denial, save in development mode without any rule plugin.
struct PluginRules: Rules {
    let chain: PluginChain
    let authority: any SchemaAuthority

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        if let plan = try await chain.openSession(user: user, types: types) { return plan }
        let allowed: TypePlan = authority.current().isDevelopment ? .open : .denied
        return SessionPlan(types: Dictionary(types.map { ($0, allowed) }, uniquingKeysWith: { first, _ in first }))
    }

    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        let narrowed = try await chain.checkSubscription(
            user: user, queries: queries.map { TypeQuery(type: $0.type, query: $0.query) })
        return queries.map { query in
            let cuts = narrowed.filter { $0.type == query.type }.map { "(\($0.query))" }
            return cuts.isEmpty ? "TRUEPREDICATE" : cuts.joined(separator: " AND ")
        }
    }

    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] {
        await chain.checkWrites(user: user, writes: writes, schema: authority.current().schema)
    }

    func ingest(type: ObjectType, _ objects: [[String: Value]]) async throws -> [IngestVerdict] {
        try await chain.ingest(type: type, objects: objects, schema: authority.current().schema)
    }
}
