package import SluiceCore

/// Receives the steps of uploads, for traces.
///
/// A step happens once for a changeset or a transaction, never for a row. Without a tracer the pipeline does nothing for traces. It
/// passes no trace along: the origin, which the WAL and the change log carry, identifies an upload on every gateway.
package protocol UploadTracer: Sendable {
    /// Runs the commit of a changeset. Steps inside of `body`, such as calls of plugins, belong to it.
    ///
    /// - Parameter changes: The number of changes of the changeset.
    func committing(
        _ origin: Origin, changes: Int, _ body: () async throws -> WriteOutcome
    ) async throws -> WriteOutcome
    /// Reports transactions, or parts of them, that the change log has acknowledged.
    func published(_ transactions: [CapturedTransaction])
    /// Reports a step of the watermark after its delivery.
    ///
    /// - Parameters:
    ///   - origins: The uploads that concerned a session; one may occur more than once.
    ///   - nanoseconds: The time since the step began.
    func delivered(_ origins: [Origin], nanoseconds: UInt64)
}
