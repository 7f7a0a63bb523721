import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct MigrateCheck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Read an export of any age, and print what runs, what needs an addition, and what has no counterpart.",
        discussion: """
            It needs no database and changes nothing.

            Exit codes: 0 when a gateway serves the app; 78 when it does not.
            """)

    @Argument(help: ArgumentHelp("The exported app directory.", valueName: "directory"))
    var directory: String

    @OptionGroup var id: AppIDOption

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let report = try await ExportCheck.report(at: directory, appID: id.appID)
            print(json ? report.json.text : report.text)
            if !report.runs { throw ExitCode(78) }
        }
    }
}
