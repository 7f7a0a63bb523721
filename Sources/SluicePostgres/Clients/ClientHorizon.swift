package import SluiceCore

/// The oldest position from which a client can still write (`sluice.horizon`). Deletions below it are forgotten.
///
/// A client that has not connected for the given days does not count. If it returns, its old writes are merged as if it had seen
/// all changes before the horizon.
package enum ClientHorizon {
    /// Advances the horizon if no gateway has done so for `seconds`, and deletes the clocks of deletions below it. A gateway skips
    /// the work while another one does it.
    package static func advance(_ session: PostgresSession, days: Int = Limits.clientMemoryDays, every seconds: Int = 540) throws {
        let advanced = try session.query(
            """
            UPDATE sluice.horizon SET at = now(), lsn = greatest(lsn, (
                SELECT coalesce(min(position), '0/0') FROM sluice.client WHERE seen_at > now() - make_interval(days => $1)))
            WHERE ctid = (
                SELECT ctid FROM sluice.horizon WHERE at <= now() - make_interval(secs => $2) FOR UPDATE SKIP LOCKED)
            RETURNING lsn
            """, [.int(Int64(min(days, 36_500))), .int(Int64(seconds))], cached: true)
        // The horizon is not due, or another gateway advances it.
        guard let horizon = advanced[0, 0] else { return }
        try session.execute(
            "DELETE FROM sluice.row_clock WHERE deleted_lsn IS NOT NULL AND deleted_lsn < $1::pg_lsn", [.text(horizon)], cached: true)
    }

    /// Returns the current horizon.
    package static func read(_ session: PostgresSession) throws -> LSN {
        try session.query("SELECT lsn FROM sluice.horizon", cached: true)[0, 0].flatMap { LSN($0) } ?? .zero
    }
}
