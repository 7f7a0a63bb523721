/// A logical message without content, whose transaction's end comes through the replication slot at once.
package enum LogMark {
    static let prefix = "sluice-mark"

    /// Writes one. It belongs to a transaction because only a transaction's end has the server write its log out now; outside of
    /// one the message waits for the server's log writer, up to a fifth of a second.
    package static func write(_ pool: PostgresPool) async throws {
        do {
            try await pool.perform { session in
                // Constant because: the prefix is this file's.
                _ = try session.query("SELECT pg_logical_emit_message(true, '\(prefix)', '')", cached: true)
            }
        } catch {
            throw PostgresFailure.forPort(error)
        }
    }
}
