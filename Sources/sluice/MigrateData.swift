import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct MigrateData: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "data", abstract: "Import what mongodump and mongoexport wrote into the app's tables.",
        discussion: """
            Sources are folders and archives of mongodump, single .bson files, and JSON or NDJSON of mongoexport; gzip is recognised. \
            Collections find their classes by database and name. Documents that do not fit are written to a quarantine file with the \
            reason. A run that was killed continues where the database knows it to be. In the end the rows are read back and compared.

            Exit codes: 0 when all documents are rows; 65 when some are in quarantine; 1 when a source is damaged, a table does not fit or \
            PostgreSQL fails; 78 for the configuration.
            """)

    @Argument(help: ArgumentHelp("Files and folders of dumps and exports.", valueName: "source"))
    var sources: [String] = []

    @OptionGroup var app: AppOptions

    @Option(help: ArgumentHelp("A file by the app's collection that it holds; may be repeated.", valueName: "db.coll=file"))
    var collection: [String] = []

    @Option(help: "Collections that are imported at the same time, 1 to 32.")
    var jobs = 2

    @Option(help: ArgumentHelp("The folder for documents that do not fit.", valueName: "directory"))
    var quarantine = "sluice-quarantine"

    @Flag(help: "Print one line of JSON, and no progress.")
    var json = false

    func validate() throws {
        guard (1...DataMigration.mostJobs).contains(jobs) else {
            throw ValidationError("--jobs is 1 to \(DataMigration.mostJobs), not \(jobs).")
        }
        guard !sources.isEmpty || !collection.isEmpty else { throw ValidationError("Name a source, or a file with --collection.") }
        _ = try CollectionOption.pairs(collection, "--collection")
    }

    func run() async throws {
        try await reporting {
            let configuration = try await app.configuration()
            let migration = try DataMigration(
                app: configuration, postgres: try app.conninfo(),
                options: .init(
                    sources: sources, named: try CollectionOption.pairs(collection, "--collection").map { ($0.collection, $0.value) },
                    jobs: jobs, quarantine: quarantine, isSilent: json))
            for note in migration.notes { StandardError.write("sluice: \(note)\n") }
            let outcomes = try await migration.run()
            if json {
                print(JSON.array(outcomes.map(\.json)).text)
            } else {
                for outcome in outcomes { print(outcome.text) }
            }
            // EX_DATAERR of sysexits.h.
            if !outcomes.allSatisfy(\.isWhole) { throw ExitCode(65) }
        }
    }
}
