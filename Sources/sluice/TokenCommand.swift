import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Print an access token of a user, for tests and for programs of your own.",
        discussion: """
            It needs what 'sluice serve' needs: the app directory and the database, whose signing key it uses. The gateway need not run. \
            Standard output has the token alone: TOKEN=$(sluice token …).

            The token cannot be revoked before it expires. A disabled user cannot start a session with it. The audit log has its issue.

            Exit codes: 0; 1 when PostgreSQL cannot be reached, or the user does not exist or is disabled; 78 when an option is wrong.
            """)

    @OptionGroup var app: AppOptions

    @Option(help: ArgumentHelp("The user's id.", valueName: "id"))
    var user: String?

    @Option(help: ArgumentHelp("The user's e-mail address, in place of --user.", valueName: "address"))
    var email: String?

    @Option(help: ArgumentHelp("The lifetime in seconds, 60 to 86400.", valueName: "seconds"))
    var ttl = AccessTokens.lifetime

    @Option(
        help: ArgumentHelp(
            "An object whose members replace those of the custom data in the token's user_data. Rules use the stored custom data.",
            valueName: "json"))
    var claims = "{}"

    func run() async throws {
        try await reporting {
            let configuration = try AppConfiguration.load(app.app, appID: app.id.appID)
            let tool = TokenTool(appID: configuration.appID, postgres: try app.conninfo())
            print(try await tool.token(for: try subject(), lifetime: ttl, claims: try parsedClaims()))
        }
    }

    private func subject() throws(SluiceError) -> TokenTool.Subject {
        switch (user, email) {
        case (let id?, nil): return .id(id)
        case (nil, let address?): return .email(address)
        default:
            throw SluiceError(
                .configInvalid, "\(user == nil ? "No user is named." : "Two users are named.")", fix: "Pass --user or --email.")
        }
    }

    private func parsedClaims() throws(SluiceError) -> JSON {
        do {
            return try JSON.parse(claims)
        } catch {
            throw SluiceError(.configInvalid, "The claims are no JSON: \(error.message)", fix: #"Write them as '{"team": "red"}'."#)
        }
    }
}
