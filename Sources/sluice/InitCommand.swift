import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct InitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Write an app directory for the tables of a database that has no Realm past.",
        discussion: """
            Reads the catalog, prints the classes, what it leaves out and why, and the files. It asks, and writes the files that are missing. \
            It never changes an existing file, and shows the difference. It changes nothing in the database.

            The first role denies everything; the last lines of the output, and README.md, tell how to open it.

            Exit codes: 0; 1 when PostgreSQL cannot be reached or the answer is no; 78 when no table can be synchronised, or an option is wrong.
            """)

    @Argument(help: ArgumentHelp("The app directory to write.", valueName: "directory"))
    var directory: String

    @OptionGroup var database: PostgresOption

    @Option(
        name: .customLong("schema"),
        help: ArgumentHelp("A schema to read; may be repeated. Default: all but those of the system.", valueName: "name"))
    var schemas: [String] = []

    @Option(
        name: .customLong("table"),
        help: ArgumentHelp("A table to read, as NAME or SCHEMA.NAME; may be repeated. Default: all.", valueName: "name"))
    var tables: [String] = []

    @Option(
        name: .customLong("app-id"),
        help: ArgumentHelp("The app id that clients are built with. Default: the directory's name.", valueName: "id"))
    var appID: String?

    @Flag(name: .shortAndLong, help: "Write the files without asking.")
    var yes = false

    @Flag(help: "Print one line of JSON; needs --yes to write the files.")
    var json = false

    func run() async throws {
        try await reporting {
            let tool = InitTool(postgres: try database.conninfo(), schemas: schemas, tables: tables)
            let report = try await tool.report(for: directory, appID: appID)
            print(json ? report.json.text : report.text)
            guard !report.isEmpty else {
                throw SluiceError(
                    .configMissing, "No table can be synchronised.", fix: "Run a statement of those above, or name other schemas.")
            }
            guard !report.plan.new.isEmpty else {
                return StandardError.write("sluice: no file is \(report.plan.withheld.isEmpty ? "missing" : "written")\n")
            }
            guard yes || !json else { return }
            guard try StandardInput.agrees(yes, "Write \(report.plan.new.count) files to \(directory)?") else { throw ExitCode(1) }
            try report.plan.write()
            if !json { print("\n\(report.next)") }
            StandardError.write("sluice: \(report.plan.new.count) files are written\n")
        }
    }
}
