import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct SchemaGrants: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants", abstract: "Print the SQL that gives a gateway's role the rights it needs. Changes nothing.",
        discussion: """
            The role owns its schema sluice and no table. Everything else is granted: what the roles of the app directory may write, the \
            replica identity of the tables, and the publication. Run the SQL as the owner of the tables. The connection may be that of any \
            role which can read the catalog.

            Exit codes: 0, also if something is missing; 1 when PostgreSQL cannot be reached; 78 when the directory is refused.
            """)

    @OptionGroup var app: AppOptions

    @Option(help: ArgumentHelp("The role that the gateway connects as. It need not exist.", valueName: "name"))
    var role = "sluice"

    @Flag(help: "Print the statements whose effect is there already, too.")
    var all = false

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting(hasRoles: true) {
            let tool = GrantTool(app: try await app.configuration(), postgres: try app.conninfo(), role: role)
            let list = try await tool.list()
            print(json ? list.json.text : list.text(all: all))
        }
    }
}
