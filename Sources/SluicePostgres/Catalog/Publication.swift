import SluiceCore

/// The publication: which tables' changes the slot's reader receives.
package enum Publication {
    /// Makes the publication, or adds the tables that it lacks; tables that it has beyond those stay.
    /// - Returns: the tables that were added.
    package static func ensure(_ connection: PostgresConnection, name: String, tables: [TableMapping]) async throws -> [TableMapping] {
        try await connection.withSession { session in
            try session.inTransaction {
                try session.query("SELECT pg_advisory_xact_lock(8317708086)", within: .seconds(60))
                let found = try session.query(
                    "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot FROM pg_publication WHERE pubname = $1",
                    [.text(name)])
                let options = "(publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
                if found.isEmpty {
                    try session.script("CREATE PUBLICATION \(SQLText.identifier(name)) WITH \(options)")
                } else if found.bool(0, 0) != true {
                    try session.script("ALTER PUBLICATION \(SQLText.identifier(name)) SET \(options)")
                }
                let present = try session.query(
                    """
                    SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), n.nspname, c.relname
                    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
                        JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE p.pubname = $1
                    """, [.text(name)])
                let names = Set((0..<present.count).map { [present[$0, 1], present[$0, 2]] })
                let missing = tables.filter { !names.contains([$0.schema, $0.table]) }
                if !missing.isEmpty {
                    let list = missing.map(\.sqlName).joined(separator: ", ")
                    try session.script("ALTER PUBLICATION \(SQLText.identifier(name)) ADD TABLE \(list)")
                }
                return missing
            }
        }
    }

    package static func drop(_ connection: PostgresConnection, name: String) async throws {
        try await connection.script("DROP PUBLICATION IF EXISTS \(SQLText.identifier(name))")
    }
}
