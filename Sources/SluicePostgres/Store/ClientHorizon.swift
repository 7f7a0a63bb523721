package import SluiceCore

/// The oldest position that a client can still write from (`sluice.horizon`): what everybody has seen since is not
/// remembered. A client that was not seen for so many days does not count; when it comes back, its old writes
/// are merged as if it had known of what happened before the horizon.
package enum ClientHorizon {
    /// Advances the horizon when no gateway has done it for nine minutes, and forgets the deletions below it. One at a time.
    package static func advance(_ session: PostgresSession, days: Int = Limits.clientMemoryDays, every seconds: Int = 540) throws {
        let advanced = try session.query(
            """
            UPDATE sluice.horizon SET at = now(), lsn = greatest(lsn, (
                SELECT coalesce(min(position), '0/0') FROM sluice.client WHERE seen_at > now() - make_interval(days => $1)))
            WHERE ctid = (
                SELECT ctid FROM sluice.horizon WHERE at <= now() - make_interval(secs => $2) FOR UPDATE SKIP LOCKED)
            RETURNING lsn
            """, [.int(Int64(min(days, 36_500))), .int(Int64(seconds))], cached: true)
        guard let horizon = advanced[0, 0] else { return }
        try session.execute(
            "DELETE FROM sluice.row_clock WHERE deleted_lsn IS NOT NULL AND deleted_lsn < $1::pg_lsn", [.text(horizon)], cached: true)
    }

    package static func read(_ session: PostgresSession) throws -> LSN {
        try session.query("SELECT lsn FROM sluice.horizon", cached: true)[0, 0].flatMap { LSN($0) } ?? .zero
    }
}
