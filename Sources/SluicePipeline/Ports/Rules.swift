package import SluiceCore

/// The rule plugins as the pipeline sees them. Every failure is an answer of its own: denied.
package protocol Rules: Sendable {
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan
    /// - Returns: predicates to AND into the queries, in their order (`TRUEPREDICATE` where nothing is narrowed).
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String]
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict]
    /// - Returns: a verdict for each object; nil when nobody decides about them: all are accepted as they are.
    /// - Throws: when no decision could be had; the objects stay in the log and are tried again.
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]?
}
