import SluiceCore

/// The requirements on the server's configuration.
package enum ServerSettings {
    /// The oldest release with logical messages in pgoutput, as `server_version_num`.
    static let oldestVersion = 140_000

    /// Compares the settings with the needs of capture.
    ///
    /// - Parameter slot: The app's slot. If it exists, no free slot is required.
    /// - Returns: A `postgresSetting` for each unmet requirement, with the setting, the found and the wanted value.
    package static func check(_ connection: PostgresConnection, slot: String) async throws -> [PostgresError] {
        let result = try await connection.query(
            """
            SELECT current_setting('server_version_num')::int, current_setting('wal_level'), current_setting('track_commit_timestamp'),
                current_setting('server_encoding'), current_setting('max_replication_slots')::int,
                current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_replication_slots),
                (SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1),
                (SELECT count(*) FROM pg_stat_replication)
            """, [.text(slot)])
        var failures: [PostgresError] = []
        func want(_ setting: String, _ found: String?, _ wanted: String, restart: Bool = true) {
            failures.append(
                PostgresError(
                    .postgresSetting, "\(setting) is \(found ?? "unknown"); wanted is \(wanted).",
                    fix: restart ? "Set it in postgresql.conf and restart PostgreSQL." : nil))
        }
        if result.int(0, 0) ?? 0 < Int64(oldestVersion) {
            want("server_version_num", result[0, 0], "\(oldestVersion) or later", restart: false)
        }
        if result[0, 1] != "logical" { want("wal_level", result[0, 1], "logical") }
        if result[0, 2] != "on" { want("track_commit_timestamp", result[0, 2], "on") }
        if result[0, 3] != "UTF8" { want("server_encoding", result[0, 3], "UTF8 (a property of the database)", restart: false) }
        let (slots, used, ours) = (result.int(0, 4) ?? 0, result.int(0, 6) ?? 0, result.int(0, 7) ?? 0)
        if ours == 0, slots <= used { want("max_replication_slots", "\(slots), \(used) of them taken", "at least \(used + 1)") }
        let senders = result.int(0, 5) ?? 0
        if senders < 1 { want("max_wal_senders", "\(senders)", "at least 1") }
        return failures
    }
}
