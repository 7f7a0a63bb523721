package import SluiceCore

/// The rule plugins, as the pipeline sees them. Every failure is an answer of its own: denied.
package protocol Rules: Sendable {
    /// Returns the session's permissions for the given classes.
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan
    /// Returns predicates to AND into the queries, in the order of `queries`. `TRUEPREDICATE` narrows nothing.
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String]
    /// Returns one verdict for each write, in the order of `writes`.
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict]
    /// Decides about asymmetric objects.
    /// - Returns: a verdict for each object; nil if no plugin decides about ingest, so that all are accepted unchanged.
    /// - Throws: if no decision was possible. The objects stay in the log and are retried.
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]?
}
