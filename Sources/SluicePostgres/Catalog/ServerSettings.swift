import SluiceCore

/// The requirements on the server's configuration.
package enum ServerSettings {
    /// The oldest release with logical messages in pgoutput, as `server_version_num`.
    package static let oldestVersion = 140_000

    /// An unmet requirement.
    package struct Unmet: Hashable, Sendable {
        /// The setting.
        package var setting: String
        package var found: String
        package var wanted: String
        /// The statement that corrects it at the next restart of the server; nil if no statement does.
        package var statement: String?

        package var error: PostgresError {
            PostgresError(
                .postgresSetting, "\(setting) is \(found); wanted is \(wanted).",
                fix: statement == nil ? nil : "Set it in postgresql.conf and restart PostgreSQL.")
        }
    }

    /// Compares the settings with the needs of capture.
    ///
    /// - Parameter slot: The app's slot. If it exists, no free slot is required.
    /// - Returns: A `postgresSetting` for each unmet requirement, with the setting, the found and the wanted value.
    package static func check(_ connection: PostgresConnection, slot: String) async throws -> [PostgresError] {
        unmet(try await ServerFacts.load(connection, slot: slot)).map(\.error)
    }

    /// Returns the requirements that the facts do not meet.
    package static func unmet(_ facts: ServerFacts) -> [Unmet] {
        var all: [Unmet] = []
        func want(_ setting: String, _ found: String?, _ wanted: String, set value: String? = nil) {
            all.append(
                Unmet(
                    setting: setting, found: found ?? "unknown", wanted: wanted,
                    statement: value.map { "ALTER SYSTEM SET \(setting) = \(SQLQuote.postgresLiteral($0))" }))
        }
        if facts.version < oldestVersion { want("server_version_num", String(facts.version), "\(oldestVersion) or later") }
        if facts["wal_level"] != "logical" { want("wal_level", facts["wal_level"], "logical", set: "logical") }
        if facts["track_commit_timestamp"] != "on" {
            want("track_commit_timestamp", facts["track_commit_timestamp"], "on", set: "on")
        }
        if facts.encoding != "UTF8" { want("server_encoding", facts.encoding, "UTF8 (a property of the database)") }
        let slots = facts.number("max_replication_slots") ?? 0
        if facts.slot == nil, slots <= facts.slots {
            want(
                "max_replication_slots", "\(slots), \(facts.slots) of them taken", "at least \(facts.slots + 1)", set: "\(facts.slots + 1)")
        }
        let senders = facts.number("max_wal_senders") ?? 0
        if senders < 1 { want("max_wal_senders", "\(senders)", "at least 1", set: "10") }
        return all
    }
}
