import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct MigrateInfer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "infer", abstract: "Propose schemas for the collections of a dump that have none.",
        discussion: """
            Reads the sources of `sluice migrate data`, twice, in constant memory. Shows each field with its type, the documents that have \
            it and the values of other types, then the files. Asks, and writes them into the app directory.

            Exit codes: 0; 1 when a source is damaged or the answer is no; 78 for the configuration.
            """)

    @Argument(help: ArgumentHelp("Files and folders of dumps and exports.", valueName: "source"))
    var sources: [String] = []

    @Option(help: ArgumentHelp("The app directory.", valueName: "directory"))
    var app: String

    @Option(help: ArgumentHelp("A file by its collection; may be repeated.", valueName: "db.coll=file"))
    var collection: [String] = []

    @Option(name: .customLong("class"), help: ArgumentHelp("The class of a collection; may be repeated.", valueName: "db.coll=Name"))
    var classes: [String] = []

    @Option(help: ArgumentHelp("The database of single files. Default: the name of their folder.", valueName: "name"))
    var database: String?

    @Option(help: ArgumentHelp("The percent of values that may be of another type than their field, 0 to 50.", valueName: "percent"))
    var exceptions = 1.0

    @Flag(help: "Propose schemas also for collections that have one, and replace them.")
    var overwrite = false

    @Flag(name: .shortAndLong, help: "Write without asking.")
    var yes = false

    @Flag(help: "Print one line of JSON; needs --yes to write something.")
    var json = false

    func validate() throws {
        guard (0...50).contains(exceptions) else { throw ValidationError("--exceptions is 0 to 50, not \(exceptions).") }
        guard !sources.isEmpty || !collection.isEmpty else { throw ValidationError("Name a source, or a file with --collection.") }
        _ = try (CollectionOption.pairs(collection, "--collection"), CollectionOption.pairs(classes, "--class"))
    }

    func run() async throws {
        try await reporting {
            let proposal = try SchemaProposal(
                at: app,
                options: .init(
                    sources: sources, named: try CollectionOption.pairs(collection, "--collection").map { ($0.collection, $0.value) },
                    classes: try CollectionOption.pairs(classes, "--class").map { ($0.collection, $0.value) }, database: database,
                    tolerance: exceptions / 100, overwrites: overwrite))
            print(json ? proposal.json.text : proposal.text)
            guard !proposal.isEmpty, yes || !json else { return }
            guard try StandardInput.agrees(yes, "Write these files into \(app)?") else { throw ExitCode(1) }
            try proposal.write()
            StandardError.write("sluice: written to \(app); now run: sluice migrate check \(app)\n")
        }
    }
}
