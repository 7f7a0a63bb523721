import SluiceCore
package import SluiceGateway
import SluicePostgres
package import SluiceValues

/// Makes the tables of an app with their indexes and comments: `sluice migrate schema`.
///
/// The tables and columns are those of `sluice schema apply`, which records the schema as the one in use.
package struct SchemaMigration: Sendable {
    private let app: AppConfiguration
    private let tool: SchemaTool

    package init(app: AppConfiguration, postgres: String) {
        self.app = app
        tool = SchemaTool(app: app, postgres: postgres)
    }

    private var additions: TableAdditions {
        TableAdditions(
            TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions), fields: app.queryableFields)
    }

    /// Returns what is missing. Changes nothing.
    package func plan() async throws -> SchemaMigrationPlan {
        let difference = try await tool.diff()
        return SchemaMigrationPlan(difference: difference, additions: try await withConnection { try await additions.statements($0) })
    }

    /// Runs the statements. Tables and columns are one transaction, indexes and comments another.
    ///
    /// - Returns: The statements that were run.
    /// - Throws: `breakingSchemaChange`; `tableUnfit` with the problems that no statement fixes. Nothing has been changed then.
    package func apply() async throws -> SchemaMigrationPlan {
        let difference = try await tool.apply(acceptsBreaking: false)
        return SchemaMigrationPlan(difference: difference, additions: try await withConnection { try await additions.apply($0) })
    }

    private func withConnection<R: Sendable>(_ body: (PostgresConnection) async throws -> R) async throws -> R {
        try await tool.withPool { try await $0.withConnection { try await body($0) } }
    }
}

/// The statements of a schema's migration.
package struct SchemaMigrationPlan: Sendable {
    /// Tables and columns.
    package let difference: SchemaDifference
    /// The statements for indexes and comments.
    package let additions: [String]

    /// `true` if nothing is to do.
    package var isEmpty: Bool {
        difference.statements.isEmpty && difference.customData.isEmpty && additions.isEmpty && !difference.isNews
    }

    /// The statements as SQL for psql. Text that is no statement is a comment.
    package var text: String {
        let heading = additions.isEmpty ? [] : ["-- Indexes and comments:"]
        return ([difference.text] + heading + additions.map { "\($0);" }).joined(separator: "\n")
    }

    package var json: JSON {
        var members = difference.json.members ?? []
        members.append(JSON.Member("additions", .array(additions.map { .string($0) })))
        return .object(members)
    }
}
