/// Writes WAL heartbeats: messages without content that move the log.
package protocol WALHeartbeatSender: Sendable {
    /// Returns once the heartbeat is written. The change source delivers it after everything committed before.
    func mark() async throws
}
