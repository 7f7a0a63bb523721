import ArgumentParser
import SluiceTools

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the objects of a view and their changes, one JSON line each.",
        discussion: """
            Subscribes as the user would and prints {"event": …, "type": …, "key": …, "object": …}: first every object of the view with
            the event "snapshot", then changes as they are committed: entered, updated, deleted, left.
            """)

    @Argument(help: ArgumentHelp("The objects to watch, in the query language.", valueName: "query"))
    var query: String

    @Option(help: "The class to watch.")
    var type: String

    @OptionGroup var login: LoginOptions

    func run() async throws {
        try await reporting {
            let client = GatewayClient(url: login.url)
            let token = try await login.token(client)
            try await WatchSession(type: type, query: query).run(url: login.url, app: try await login.app(client), token: token)
        }
    }
}
