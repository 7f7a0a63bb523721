import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct MigrateUsers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Make accounts of the users that the Admin API of App Services lists.",
        discussion: """
            Files have answers of GET /groups/{groupId}/apps/{appId}/users, one or several pages each; gzip is recognised. Users keep \
            their ids. Passwords and API keys cannot be exported: new keys, and a link for each user who must set a password, are lines of \
            the credential file, which only you can read. A second run makes what is missing.

            Exit codes: 0 when all users are accounts; 65 when some are left out or incomplete; 1 when a source is damaged, a table is \
            missing or PostgreSQL fails; 78 for the configuration.
            """)

    @Argument(help: ArgumentHelp("Files with users as JSON.", valueName: "file"))
    var files: [String]

    @OptionGroup var app: AppOptions

    @Option(help: ArgumentHelp("The file for links and API keys, mode 0600; a later run continues it.", valueName: "file"))
    var credentials = "sluice-credentials.ndjson"

    @Option(help: "The days for which a link sets a password, 1 to 365.")
    var validDays = 30

    @Flag(help: "Make new links for all users without a password. Earlier ones become invalid.")
    var renew = false

    @Flag(help: "Print one line of JSON.")
    var json = false

    func validate() throws {
        guard (1...365).contains(validDays) else { throw ValidationError("--valid-days is 1 to 365, not \(validDays).") }
    }

    func run() async throws {
        try await reporting {
            let migration = try UserMigration(
                app: try await app.configuration(), postgres: try app.conninfo(),
                options: .init(sources: files, credentials: credentials, validDays: validDays, renews: renew))
            let report = try await migration.run(now: SystemEnvironment().wallMilliseconds())
            print(json ? report.json.text : report.text)
            // EX_DATAERR of sysexits.h.
            if !report.isWhole { throw ExitCode(65) }
        }
    }
}
