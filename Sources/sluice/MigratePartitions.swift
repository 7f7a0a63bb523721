import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct MigratePartitions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "partitions", abstract: "Make a flexible app of an export with partition-based sync.",
        discussion: """
            The partition key becomes the indexed queryable field, and the permissions become the default role. Functions are read, and \
            become a part of the role if they compare the partition with the user or custom user data. Shows the changes, asks, and \
            writes them.

            Exit codes: 0; 65 when a permission denies everybody until a role is written by hand; 1 when the answer is no; 78 for an \
            export that cannot be read or does not use partition-based sync.
            """)

    @Argument(help: ArgumentHelp("The exported app directory.", valueName: "directory"))
    var directory: String

    @Option(help: ArgumentHelp("A new folder for the changed copy. Default: the export itself is changed.", valueName: "directory"))
    var out: String?

    @Flag(name: .shortAndLong, help: "Write without asking.")
    var yes = false

    @Flag(help: "Print one line of JSON; needs --yes to write something.")
    var json = false

    func run() async throws {
        try await reporting {
            let migration = try PartitionMigration(at: directory)
            print(json ? migration.json.text : migration.text)
            if yes || !json {
                guard try StandardInput.agrees(yes, "Write these changes to \(out ?? directory)?") else { throw ExitCode(1) }
                try migration.write(to: out)
                StandardError.write("sluice: written to \(out ?? directory); now run: sluice migrate check \(out ?? directory)\n")
            }
            // EX_DATAERR of sysexits.h.
            if !migration.denied.isEmpty { throw ExitCode(65) }
        }
    }
}
