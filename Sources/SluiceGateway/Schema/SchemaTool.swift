package import SluiceCore
import SluicePostgres

/// What an app directory would change of a database, and doing so: `sluice schema`.
package struct SchemaTool: Sendable {
    private let app: AppConfiguration
    private let conninfo: String

    package init(app: AppConfiguration, postgres: String) {
        self.app = app
        conninfo = postgres
    }

    /// Looks, and changes nothing.
    package func diff() async throws -> SchemaDifference { try await withPool { try await difference($0) } }

    /// Runs the statements and records the schema; gateways that run take up what it adds.
    ///
    /// - Parameter acceptsBreaking: whether to go on when apps in use lose something.
    /// - Returns: what was changed.
    /// - Throws: `breakingSchemaChange`; `tableUnfit` naming what no statement mends; then nothing has been changed.
    package func apply(acceptsBreaking: Bool) async throws -> SchemaDifference {
        try await withPool { pool in
            try await PostgresFailure.translating { try await pool.withConnection { try await CompanionSchema.migrate($0) } }
            var difference = try await difference(pool)
            if let refusal = difference.refusal(isBreakingAccepted: acceptsBreaking) { throw refusal }
            let catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
            try await PostgresFailure.translating {
                try await pool.withConnection { connection in
                    _ = try await catalog.create(connection)
                    _ = try await catalog.setReplicaIdentity(connection)
                }
            }
            guard difference.isNews else { return difference }
            let version = try await AppSchemaStore(pool: pool).record(
                AppSchemaRecord(app).json, after: difference.version, retiring: difference.comparison.retired)
            guard let version else {
                throw SluiceError(
                    .breakingSchemaChange, "Another schema was applied while this one was.", fix: "Look at `sluice schema diff` again.")
            }
            difference.applied = version
            return difference
        }
    }

    private func difference(_ pool: PostgresPool) async throws -> SchemaDifference {
        let newest = try await AppliedSchema(store: AppSchemaStore(pool: pool)).newest()
        let new = AppSchemaRecord(app)
        let catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
        let (statements, misfits) = try await PostgresFailure.translating {
            try await pool.withConnection { try await catalog.plan($0) }
        }
        let foreignKeys = try await PostgresFailure.translating {
            try await pool.withConnection { try await catalog.foreignKeys($0) }
        }
        let none = AppSchemaRecord(schema: Schema([]), tables: [:], fields: QueryableFields(indexed: new.fields.indexed))
        return SchemaDifference(
            version: newest?.version ?? 0, comparison: SchemaComparison(from: newest?.record ?? none, to: new), statements: statements,
            unfit: misfits.map(\.message), risks: ForeignKeys.undeferrable(foreignKeys).map(Self.risk))
    }

    private static func risk(_ key: ForeignKey) -> String {
        "The foreign key \(key.name) of class \(key.child) leads back to it over class \(key.parent) and cannot be deferred: a transaction "
            + "of a device whose objects refer to each other in a circle is refused. Run ALTER TABLE … ALTER CONSTRAINT … DEFERRABLE."
    }

    private func withPool<R>(_ body: (PostgresPool) async throws -> R) async throws -> R {
        let pool = PostgresPool(conninfo, name: "schema", size: 1)
        do {
            let result = try await body(pool)
            await pool.close()
            return result
        } catch {
            await pool.close()
            throw PostgresFailure.forPort(error)
        }
    }
}

/// An app directory beside the schema in use and the tables that are there.
package struct SchemaDifference: Sendable {
    /// Of the schema in use; 0: none.
    package var version: UInt64
    package var comparison: SchemaComparison
    /// What PostgreSQL has to run, in order.
    package var statements: [String]
    /// What of the tables does not fit and no statement here mends.
    package var unfit: [String]
    /// What of the tables makes PostgreSQL refuse writes that the rules allow.
    package var risks: [String] = []
    /// The version that it has become.
    package var applied: UInt64?

    /// Whether there is anything to record.
    var isNews: Bool { version == 0 || !comparison.changes.isEmpty }

    /// Why it cannot be applied; nil when it can.
    package func refusal(isBreakingAccepted: Bool) -> SluiceError? {
        if !isBreakingAccepted, let refusal = comparison.refusal(version: version) { return refusal }
        return unfit.isEmpty ? nil : SluiceError(.tableUnfit, unfit.joined(separator: " "))
    }

    /// For people, and for psql: what is no statement is a comment.
    package var text: String {
        var lines: [String] = []
        lines.append(version == 0 ? "-- No schema is in use yet." : "-- The schema in use is version \(version).")
        let additions = comparison.changes.filter { $0.breaks == nil }
        if !additions.isEmpty { lines += ["-- Adds:"] + additions.map { "--   \($0.text)" } }
        if comparison.isBreaking { lines += ["-- BREAKS:"] + comparison.breaking.map { "--   \($0.text): \($0.breaks ?? "")" } }
        if !unfit.isEmpty { lines += ["-- DOES NOT FIT, and no statement below mends it:"] + unfit.map { "--   \($0)" } }
        if !risks.isEmpty { lines += ["-- WARNING:"] + risks.map { "--   \($0)" } }
        if comparison.changes.isEmpty, statements.isEmpty, unfit.isEmpty { lines.append("-- Nothing changes.") }
        return (lines + statements.map { "\($0);" }).joined(separator: "\n")
    }

    package var json: JSON {
        [
            "version": .int(Int64(version)), "applied": applied.map { .int(Int64($0)) } ?? .null,
            "changes": .array(
                comparison.changes.map { ["change": .string($0.text), "breaks": $0.breaks.map { .string($0) } ?? .null] }),
            "statements": .array(statements.map { .string($0) }), "unfit": .array(unfit.map { .string($0) }),
            "risks": .array(risks.map { .string($0) }),
        ]
    }
}
