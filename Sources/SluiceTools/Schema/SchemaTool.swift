package import SluiceCore
package import SluiceGateway
package import SluicePostgres
package import SluiceValues

/// Compares an app directory with a database and applies the differences: `sluice schema`.
package struct SchemaTool: Sendable {
    private let app: AppConfiguration
    private let conninfo: String
    private let statementLimit: Duration

    /// - Parameter statementLimit: The time limit of statements that only read.
    package init(app: AppConfiguration, postgres: String, statementLimit: Duration = PostgresConnection.statementLimit) {
        self.app = app
        self.statementLimit = statementLimit
        conninfo = postgres
    }

    /// Returns the differences. Changes nothing.
    package func diff() async throws -> SchemaDifference { try await withPool { try await difference($0) } }

    /// Runs the statements and records the schema in one transaction. Running gateways adopt the additions.
    ///
    /// - Parameter acceptsBreaking: `true` to apply changes that break apps in use.
    /// - Returns: The applied differences.
    /// - Throws: `breakingSchemaChange`; `tableUnfit` with the problems that no statement fixes. Nothing has been changed then.
    package func apply(acceptsBreaking: Bool) async throws -> SchemaDifference {
        try await withPool { pool in
            var difference = try await difference(pool)
            if let refusal = difference.refusal(isBreakingAccepted: acceptsBreaking) { throw refusal }
            let (catalog, definition, found) = (self.catalog(after: difference.newest), AppSchemaRecord(app).json, difference)
            difference.applied = try await PostgresError.translating {
                try await pool.withConnection { connection in
                    try await catalog.requireRights(connection)
                    try await CompanionSchema.create(connection)
                    return try await catalog.apply(connection) { session -> UInt64? in
                        for statement in found.customData { try session.script(statement, within: .seconds(60)) }
                        guard found.isNews else { return nil }
                        let version = try AppSchemaStore.record(
                            definition, after: found.version, retiring: found.comparison.retired, in: session)
                        // nil: another schema was recorded after the comparison, so the transaction rolls back.
                        if let version { return version }
                        throw SluiceError(
                            .breakingSchemaChange, "Another schema was applied at the same time.",
                            fix: "Run `sluice schema diff` again.")
                    }
                }
            }
            return difference
        }
    }

    /// - Parameter newest: The schema in use.
    private func catalog(after newest: AppSchemaRecord?) -> TableCatalog {
        var catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
        catalog.adopted = Set(app.schema.types.map(\.name).filter { newest?.schema[$0] == nil })
        return catalog
    }

    private func difference(_ pool: PostgresPool) async throws -> SchemaDifference {
        let newest = try await AppliedSchema(store: AppSchemaStore(pool: pool)).newest()
        let new = AppSchemaRecord(app)
        let catalog = self.catalog(after: newest?.record)
        let plan = try await PostgresError.translating {
            try await pool.withConnection { try await catalog.plan($0) }
        }
        let customData = try await PostgresError.translating { try await CustomDataTable(pool: pool).columns(of: app) }
        let customTable = try await PostgresError.translating { try await CustomDataTable(pool: pool).statements(for: app) }
        let rules = await RuleCheck(app: app, customDataFields: customData).refusal()
        let none = AppSchemaRecord(schema: Schema([]), tables: [:], fields: QueryableFields(indexed: new.fields.indexed))
        var found = SchemaDifference(
            version: newest?.version ?? 0, newest: newest?.record, comparison: SchemaComparison(from: newest?.record ?? none, to: new),
            structure: plan.structure, identities: plan.identities, unfit: plan.misfits.map(\.messageWithFix), findings: plan.findings,
            rules: rules)
        found.customData = customTable
        return found
    }

    /// Runs the body with connections that are closed behind it.
    func withPool<R>(_ body: (PostgresPool) async throws -> R) async throws -> R {
        let pool = PostgresPool(conninfo, name: "schema", size: 1, statementLimit: statementLimit)
        do {
            let result = try await body(pool)
            await pool.close()
            return result
        } catch {
            await pool.close()
            throw PostgresError.forPort(error)
        }
    }
}

/// The differences of an app directory from the schema in use and the existing tables.
package struct SchemaDifference: Sendable {
    /// The version of the schema in use; 0 if there is none.
    package var version: UInt64
    /// The schema in use.
    package var newest: AppSchemaRecord?
    package var comparison: SchemaComparison
    /// The SQL statements about tables and columns, in order.
    package var structure: [String]
    /// The SQL statements that set the replica identity, which a gateway does itself. They come after `structure`.
    package var identities: [String]
    /// The SQL statements that create a missing table or column of custom user data. They come last.
    package var customData: [String] = []
    /// The problems of tables that no statement here fixes.
    package var unfit: [String]
    /// The warnings about tables that fit.
    package var findings: [TableFinding] = []
    /// The error with which a gateway would reject the roles; nil if it would not.
    package var rules: SluiceError?
    /// The version of the applied schema; nil before.
    package var applied: UInt64?

    /// The SQL statements to run, in order.
    package var statements: [String] { structure + identities }

    /// `true` if there is a schema to record.
    var isNews: Bool { version == 0 || !comparison.changes.isEmpty }

    /// Returns the error that prevents applying; nil if there is none.
    package func refusal(isBreakingAccepted: Bool) -> SluiceError? {
        // In the order in which a gateway would detect them.
        if !isBreakingAccepted, let refusal = comparison.refusal(version: version) { return refusal }
        return unfit.isEmpty ? rules : SluiceError(.tableUnfit, unfit.joined(separator: " "))
    }

    /// The differences as SQL for psql. Text that is no statement is a comment.
    package var text: String {
        var lines: [String] = []
        lines.append(version == 0 ? "-- No schema is in use yet." : "-- The schema in use is version \(version).")
        let additions = comparison.changes.filter { $0.breaks == nil }
        if !additions.isEmpty { lines += ["-- Adds:"] + additions.map { "--   \($0.text)" } }
        if comparison.isBreaking { lines += ["-- BREAKS:"] + comparison.breaking.map { "--   \($0.text): \($0.breaks ?? "")" } }
        if !unfit.isEmpty { lines += ["-- DOES NOT FIT, and no statement below corrects it:"] + unfit.map { "--   \($0)" } }
        if let rules { lines += ["-- THE ROLES ARE REFUSED:"] + rules.operatorText.split(separator: "\n").map { "--   \($0)" } }
        if !findings.isEmpty { lines += ["-- WARNINGS; run one of the statements below each:"] + findings.flatMap(Self.lines) }
        if comparison.changes.isEmpty, statements.isEmpty, customData.isEmpty, unfit.isEmpty, rules == nil {
            lines.append("-- Nothing changes.")
        }
        lines += statements.map { "\($0);" }
        if !customData.isEmpty { lines += ["-- Custom user data, which auth/custom_user_data.json names:"] + customData.map { "\($0);" } }
        return lines.joined(separator: "\n")
    }

    private static func lines(_ finding: TableFinding) -> [String] {
        ["--   \(finding.message) (\(finding.code.name), \(finding.code.rawValue))"] + finding.statements.map { "--     \($0);" }
    }

    private static func json(_ finding: TableFinding) -> JSON {
        [
            "code": .int(Int64(finding.code.rawValue)), "name": .string(finding.code.name), "class": .string(finding.type),
            "table": .string(finding.table), "subject": .string(finding.subject), "message": .string(finding.message),
            "statements": .array(finding.statements.map { .string($0) }),
        ]
    }

    package var json: JSON {
        [
            "version": .int(Int64(version)), "applied": applied.map { .int(Int64($0)) } ?? .null,
            "changes": .array(
                comparison.changes.map { ["change": .string($0.text), "breaks": $0.breaks.map { .string($0) } ?? .null] }),
            "statements": .array((statements + customData).map { .string($0) }), "unfit": .array(unfit.map { .string($0) }),
            "rules": rules.map { .string($0.operatorText) } ?? .null, "warnings": .array(findings.map(Self.json)),
        ]
    }
}
