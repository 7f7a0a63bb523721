import SluiceCore
package import SluiceValues

/// The app's schemas, by version (`sluice.app_schema`). The newest one is in use.
package struct AppSchemaStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the newest schema; nil if none has been recorded or the schema `sluice` does not exist yet.
    package func newest() async throws -> (version: UInt64, definition: JSON)? {
        try await pool.perform { session in
            // The table does not exist before the first start, and a query of it would fail.
            guard try session.query("SELECT to_regclass('sluice.app_schema') IS NOT NULL").bool(0, 0) == true else { return nil }
            let result = try session.query("SELECT version, definition FROM sluice.app_schema ORDER BY version DESC LIMIT 1")
            guard let version = result.int(0, 0) else { return nil }
            return (UInt64(clamping: version), try result.json(0, 1))
        }
    }

    /// Returns the newest version; 0 if none has been recorded.
    package func newestVersion() async throws -> UInt64 {
        try await pool.perform { session in
            UInt64(clamping: try session.query("SELECT COALESCE(max(version), 0) FROM sluice.app_schema", cached: true).int(0, 0) ?? 0)
        }
    }

    /// Records a schema as the version after `version`, and announces it to the publisher through the WAL.
    ///
    /// - Parameter retiring: Properties whose numbers must not be reused, because their values changed their meaning or were
    ///   removed.
    /// - Returns: The new version; nil if another version has been recorded since `version`.
    package func record(
        _ definition: JSON, after version: UInt64, retiring: [(type: String, property: String)] = []
    ) async throws -> UInt64? {
        try await pool.transact { try Self.record(definition, after: version, retiring: retiring, in: $0) }
    }

    /// Records a schema within the session's transaction.
    package static func record(
        _ definition: JSON, after version: UInt64, retiring: [(type: String, property: String)] = [], in session: PostgresSession
    ) throws -> UInt64? {
        // The lock blocks other recorders until the commit, but no readers.
        try session.query("LOCK TABLE sluice.app_schema IN SHARE ROW EXCLUSIVE MODE")
        let newest = UInt64(clamping: try session.query("SELECT COALESCE(max(version), 0) FROM sluice.app_schema").int(0, 0) ?? 0)
        guard newest == version else { return nil }
        // The renamed entry keeps the number reserved. A property that reuses the name receives a new number.
        for (type, property) in retiring {
            try session.execute(
                "UPDATE sluice.property SET name = name || '@' || id WHERE type = $1 AND name = $2", [.text(type), .text(property)])
        }
        try session.execute(
            "INSERT INTO sluice.app_schema (version, definition) VALUES ($1, $2)", [.int(newest + 1), .text(definition.text)])
        try SchemaAnnouncement(version: newest + 1, definition: definition).write(session)
        return newest + 1
    }
}
