package import SluiceCore

/// An announcement in the write-ahead log that the app's schema has grown. It lies there before every row that somebody who
/// knows of the growth can be waiting for: whoever publishes takes up the schema before it reads on.
package struct SchemaAnnouncement: Sendable {
    /// The prefix of the logical message; its content is JSON.
    static let prefix = "sluice-schema"

    /// The number under which the schema is recorded; nil when it is nowhere but here.
    package var version: UInt64?
    /// As `sluice.app_schema` keeps it.
    package var definition: JSON

    package init(version: UInt64? = nil, definition: JSON) {
        self.version = version
        self.definition = definition
    }

    /// Reads what a capture batch has of it; nil for what this release did not write.
    package init?(_ text: String) {
        guard let json = try? JSON.parse(text), let definition = json["schema"] else { return nil }
        self.init(version: json["version"]?.int.flatMap { UInt64(exactly: $0) }, definition: definition)
    }

    private var text: String {
        let json: JSON = ["version": version.map { .int(Int64($0)) } ?? .null, "schema": definition]
        return json.text
    }

    func write(_ session: PostgresSession) throws {
        try session.query("SELECT pg_logical_emit_message(true, $1, $2)", [.text(Self.prefix), .text(text)])
    }

    package func write(_ pool: PostgresPool) async throws { try await pool.transact { try write($0) } }
}
