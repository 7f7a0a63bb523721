import SluiceCore
package import SluiceGateway
package import SluicePostgres
package import SluiceValues

/// Lists what the role of a gateway lacks in its database: `sluice schema grants`.
package struct GrantTool: Sendable {
    private let app: AppConfiguration
    private let tool: SchemaTool
    private let role: String

    package init(app: AppConfiguration, postgres: String, role: String) {
        self.app = app
        self.role = role
        tool = SchemaTool(app: app, postgres: postgres)
    }

    /// Returns the grants of the role. Changes nothing.
    package func list() async throws -> GrantList {
        let needs = DatabaseNeeds(app, role: role)
        return try await tool.withPool { pool in
            try await PostgresError.translating {
                try await pool.withConnection { connection in
                    let database = try await connection.query("SELECT current_database()")[0, 0] ?? ""
                    let missing = try await DatabaseGrants.missingTables(needs, connection)
                    return GrantList(
                        role: role, database: database, missingTables: missing, grants: try await DatabaseGrants.all(needs, connection))
                }
            }
        }
    }
}

/// The grants of a role, in the order in which their statements can be run.
package struct GrantList: Sendable {
    package let role: String
    package let database: String
    /// The app's tables that do not exist, for people.
    package let missingTables: [String]
    package let grants: [DatabaseGrant]

    package var missing: [DatabaseGrant] { grants.filter { !$0.isMet } }

    /// Returns the statements as SQL for psql. Text that is no statement is a comment.
    ///
    /// - Parameter all: `true` for the statements whose effect is there already, too.
    package func text(all: Bool) -> String {
        let chosen = all ? grants : missing
        var lines = ["-- The role \(role) of a gateway in the database \(database). Run this as the owner of the tables or a superuser."]
        if !missingTables.isEmpty {
            lines.append("-- These tables do not exist. Make them first (sluice schema diff): \(missingTables.joined(separator: ", ")).")
        }
        if missing.isEmpty { lines.append("-- It lacks nothing.") }
        if missing.contains(where: { $0.kind == .role }) { lines.append("-- Give the role a password: \\password") }
        return (lines + chosen.map { "\($0.statement);" }).joined(separator: "\n")
    }

    /// The list as JSON: `{"role", "database", "missing_tables": […], "grants": [{"met", "lack", "statement"}]}`.
    package var json: JSON {
        [
            "role": .string(role), "database": .string(database), "missing_tables": .array(missingTables.map { .string($0) }),
            "grants": .array(
                grants.map { ["met": .bool($0.isMet), "lack": .string($0.lack), "statement": .string($0.statement)] }),
        ]
    }
}
