import SluiceCore
import SluiceGateway
import SluicePostgres

/// Collects the facts about PostgreSQL and the app's tables for `sluice check`.
struct DatabaseCheck: Sendable {
    let options: GatewayCheck.Options
    let app: AppConfiguration?
    let environment: any Environment

    init(_ options: GatewayCheck.Options, _ app: AppConfiguration?, environment: any Environment) {
        self.options = options
        self.app = app
        self.environment = environment
    }

    func run() async -> CheckReport {
        var report = CheckReport()
        guard let conninfo = options.postgres else {
            report.add([
                CheckFinding(
                    .error, .options, "--postgres", "No PostgreSQL is named.", fix: "Pass --postgres or set SLUICE_POSTGRES.")
            ])
            report.skip(.postgres, "no PostgreSQL is named.")
            report.skip(.tables, "no PostgreSQL is named.")
            return report
        }
        do {
            let connection = try await PostgresConnection.connect(
                conninfo, within: GatewayCheck.patience, statementLimit: GatewayCheck.patience)
            await look(connection, conninfo, &report)
            await connection.close()
        } catch {
            report.add([Self.finding(error, .postgres, "--postgres")])
            report.skip(.postgres, "PostgreSQL does not answer.")
            report.skip(.tables, "PostgreSQL does not answer.")
        }
        return report
    }

    private static func finding(_ error: any Error, _ area: CheckFinding.Area, _ subject: String) -> CheckFinding {
        let error = SluiceError(of: error) ?? SluiceError(.postgresUnreachable, "\(error)")
        // As at the start of a gateway, a refused connection has its own remedy.
        return CheckFinding(.error, area, subject, PostgresRefusal.error(error) ?? error)
    }

    private func look(_ connection: PostgresConnection, _ conninfo: String, _ report: inout CheckReport) async {
        do {
            let database = try await connection.query("SELECT current_database()")[0, 0] ?? ""
            let names = ReplicationNames(app: app?.appID ?? "", database: database)
            let facts = try await ServerFacts.load(connection, slot: names.slot)
            let (skew, error) = try await clockSkew(connection)
            // Without an app the slot's name is unknown.
            let found = PostgresFindings(
                facts, clockSkew: skew, clockError: error, slot: names.slot, directory: options.directory
            ).findings
            report.add(app == nil ? found.filter { $0.subject != names.slot } : found)
            guard let app else { return report.skip(.tables, "the app directory cannot be read.") }
            do {
                report.add(try await tables(app, names, connection, conninfo))
            } catch {
                report.add([Self.finding(error, .tables, "tables")])
            }
        } catch {
            report.add([Self.finding(error, .postgres, "--postgres")])
            report.skip(.tables, "PostgreSQL does not answer.")
        }
    }

    /// Returns the server's clock less this machine's, and the largest error, in milliseconds. The best of three readings counts.
    private func clockSkew(_ connection: PostgresConnection) async throws -> (skew: Int64, error: Int64) {
        var best: (skew: Int64, error: Int64)?
        for _ in 0..<3 {
            let before = environment.wallMilliseconds()
            let server = try await connection.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").int(0, 0) ?? before
            let after = environment.wallMilliseconds()
            let error = (after - before) / 2 + 1
            if best.map({ error < $0.error }) ?? true { best = (server - (before + after) / 2, error) }
        }
        return best ?? (0, 0)
    }

    private func tables(
        _ app: AppConfiguration, _ names: ReplicationNames, _ connection: PostgresConnection, _ conninfo: String
    ) async throws -> [CheckFinding] {
        // Before the other questions, which fail in a schema that the role may not use. A gateway does not start with these either.
        let missing = try await DatabaseGrants.missing(DatabaseNeeds(app, others: options.plugins.files), connection)
        if missing.contains(where: { $0.kind == .schema || $0.kind == .companion }) { return TableFindings.findings(missing) }
        do {
            return try await findings(app, names, missing, connection, conninfo)
        } catch {
            guard let refusal = SluiceError(of: error), !missing.isEmpty else { throw error }
            // Without a grant on a table, some of the questions fail.
            return TableFindings.findings(missing)
                + (refusal.isMissingPrivilege ? [] : [Self.finding(refusal, .tables, "tables")])
        }
    }

    private func findings(
        _ app: AppConfiguration, _ names: ReplicationNames, _ missing: [DatabaseGrant], _ connection: PostgresConnection,
        _ conninfo: String
    ) async throws -> [CheckFinding] {
        let catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
        let readable = catalog.tables.filter { catalog.type(of: $0)?.kind == .topLevel }
        let publication = try await Publication.state(connection, name: names.publication, tables: readable)
        let tool = SchemaTool(app: app, postgres: conninfo, statementLimit: GatewayCheck.patience)
        return TableFindings(
            difference: try await tool.diff(), readable: readable, publication: publication, publicationName: names.publication,
            missing: missing, directory: options.directory
        ).findings
    }
}

extension SluiceError {
    /// `true` if PostgreSQL denied a statement for want of a privilege (42501).
    fileprivate var isMissingPrivilege: Bool {
        if case .postgres(let state?, _) = cause { state == "42501" } else { false }
    }
}
