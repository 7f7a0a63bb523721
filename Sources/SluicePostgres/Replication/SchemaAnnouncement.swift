import SluiceCore
package import SluiceValues

/// An announcement in the WAL that the app's schema has grown.
///
/// It precedes every row that a client of the new schema can wait for, because the publisher adopts the schema before it reads on.
package struct SchemaAnnouncement: Sendable {
    /// The prefix of the logical message; its content is JSON.
    static let prefix = "sluice-schema"

    /// The version in `sluice.app_schema`; nil if the schema is not recorded there.
    package var version: UInt64?
    /// The schema, as `sluice.app_schema` stores it.
    package var definition: JSON

    package init(version: UInt64? = nil, definition: JSON) {
        self.version = version
        self.definition = definition
    }

    /// Creates the announcement from its text in a capture batch; nil if this release did not write it.
    package init?(_ text: String) {
        guard let json = try? JSON.parse(text), let definition = json["schema"] else { return nil }
        self.init(version: json["version"]?.int.flatMap { UInt64(exactly: $0) }, definition: definition)
    }

    private var text: String {
        let json: JSON = ["version": version.map { .int(Int64($0)) } ?? .null, "schema": definition]
        return json.text
    }

    /// Writes the announcement as a message of the session's transaction.
    func write(_ session: PostgresSession) throws {
        try session.query("SELECT pg_logical_emit_message(true, $1, $2)", [.text(Self.prefix), .text(text)])
    }

    package func write(_ pool: PostgresPool) async throws { try await pool.transact { try write($0) } }
}
