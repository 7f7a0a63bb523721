import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct MigrateSchema: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Make the tables of an app directory, with indexes and comments.",
        discussion: """
            Prints the SQL, asks, and runs it. Each database of the app directory is a schema of PostgreSQL, and each collection a table. \
            Links and the indexed queryable field get an index. A second run changes nothing.

            Exit codes: 0; 1 when PostgreSQL cannot be reached, a table does not fit, or the answer is no; 78 when something breaks.
            """)

    @Argument(help: ArgumentHelp("The app directory: schemas, rules, sync configuration.", valueName: "directory"))
    var directory: String

    @OptionGroup var id: AppIDOption
    @OptionGroup var database: PostgresOption

    @Flag(name: .shortAndLong, help: "Run the statements without asking.")
    var yes = false

    @Flag(help: "Print one line of JSON; needs --yes to change something.")
    var json = false

    func run() async throws {
        try await reporting {
            let app = try await ExportCheck.configuration(at: directory, appID: id.appID)
            for note in app.notes { StandardError.write("sluice: \(note)\n") }
            let migration = SchemaMigration(app: app, postgres: try database.conninfo())
            let plan = try await migration.plan()
            if !json { print(plan.text) }
            if let refusal = plan.difference.refusal(isBreakingAccepted: false) { throw refusal }
            guard !plan.isEmpty, yes || !json else {
                if json { print(plan.json.text) }
                return
            }
            guard try StandardInput.agrees(yes, "Run these statements?") else { throw ExitCode(1) }
            let done = try await migration.apply()
            if json { print(done.json.text) } else { StandardError.write("sluice: the tables are made\n") }
        }
    }
}

/// The option for a command that needs a database and no app.
struct PostgresOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("PostgreSQL, as a libpq connection string. Default: the environment's SLUICE_POSTGRES.", valueName: "conninfo"))
    var postgres: String?

    /// Returns the value of the option, or that of the environment; nil if neither has one.
    static func conninfo(_ option: String?) throws(SluiceError) -> String? {
        if let option { return option }
        return try ProcessEnvironment().secret("SLUICE_POSTGRES")
    }

    func conninfo() throws(SluiceError) -> String {
        guard let conninfo = try Self.conninfo(postgres) else {
            throw SluiceError(.configMissing, "No PostgreSQL is named.", fix: "Pass --postgres or set SLUICE_POSTGRES.")
        }
        return conninfo
    }
}
