package import SluiceCore

/// The app's schemas, by version (`sluice.app_schema`): the newest is the one in use.
package struct AppSchemaStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Nil when none has been recorded, also where the schema `sluice` is not there yet.
    package func newest() async throws -> (version: UInt64, definition: JSON)? {
        try await pool.perform { session in
            guard try session.query("SELECT to_regclass('sluice.app_schema') IS NOT NULL").bool(0, 0) == true else { return nil }
            let result = try session.query("SELECT version, definition FROM sluice.app_schema ORDER BY version DESC LIMIT 1")
            guard let version = result.int(0, 0) else { return nil }
            return (UInt64(clamping: version), try result.json(0, 1))
        }
    }

    /// The number of the newest; 0: none.
    package func newestVersion() async throws -> UInt64 {
        try await pool.perform { session in
            UInt64(clamping: try session.query("SELECT COALESCE(max(version), 0) FROM sluice.app_schema", cached: true).int(0, 0) ?? 0)
        }
    }

    /// Records a schema after the version that it was compared with, and announces it to who publishes.
    ///
    /// - Parameter retiring: properties whose numbers are not used again, since their values mean something else or are gone.
    /// - Returns: its version; nil when another has been recorded meanwhile.
    package func record(
        _ definition: JSON, after version: UInt64, retiring: [(type: String, property: String)] = []
    ) async throws -> UInt64? {
        try await pool.transact { try Self.record(definition, after: version, retiring: retiring, in: $0) }
    }

    /// The same inside a transaction.
    package static func record(
        _ definition: JSON, after version: UInt64, retiring: [(type: String, property: String)] = [], in session: PostgresSession
    ) throws -> UInt64? {
        try session.query("LOCK TABLE sluice.app_schema IN SHARE ROW EXCLUSIVE MODE")
        let newest = UInt64(clamping: try session.query("SELECT COALESCE(max(version), 0) FROM sluice.app_schema").int(0, 0) ?? 0)
        guard newest == version else { return nil }
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
