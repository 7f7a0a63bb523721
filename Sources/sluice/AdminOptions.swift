import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

/// The options that secure a gateway's admin port.
struct AdminOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Admin tokens, one a line, as 'sluice admin-token' creates them. Default: SLUICE_ADMIN_TOKEN_FILE, else SLUICE_ADMIN_TOKEN.",
            valueName: "file"))
    var adminTokenFile: String?

    @Option(help: ArgumentHelp("A Unix socket for its owner, which serves the admin port without a token.", valueName: "path"))
    var adminSocket: String?

    func configuration() throws(SluiceError) -> GatewayConfiguration.Admin {
        .init(tokens: try AdminTokens.read(file: adminTokenFile), socket: adminSocket)
    }
}

/// The options that select and authenticate against a gateway's admin port.
struct AdminTarget: ParsableArguments {
    @Option(help: "The gateway's admin address, or unix:PATH of its admin socket.")
    var admin = "http://127.0.0.1:8091"

    @Option(
        help: ArgumentHelp("A file with an admin token. Default: SLUICE_ADMIN_TOKEN_FILE, else SLUICE_ADMIN_TOKEN.", valueName: "file"))
    var adminTokenFile: String?

    func client() throws(SluiceError) -> GatewayClient {
        let tokens = try AdminTokens.read(file: adminTokenFile)
        let secret = tokens.all.lazy.compactMap(\.secret).first
        guard tokens.all.isEmpty || secret != nil || admin.hasPrefix(GatewayClient.socketScheme) else {
            throw SluiceError(.configInvalid, "The admin tokens are hashes.", fix: "Give the token that sluice admin-token printed.")
        }
        return GatewayClient(url: admin, adminToken: secret)
    }
}

struct AdminTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin-token", abstract: "Create a token of the admin port.",
        discussion: """
            Prints the token on standard output, and on standard error the line of the gateway's token file, which has its hash. \
            Nothing else knows the token.
            """)

    @Option(help: "The token's name, which the audit log shows.")
    var name = "admin"

    @Option(help: "read or change.")
    var role: AdminRole = .change

    @Option(help: ArgumentHelp("Append the line to the gateway's token file.", valueName: "file"))
    var addTo: String?

    func run() async throws {
        try await reporting {
            let token = try AdminToken.make(name: name, role: role)
            if let addTo { try AdminTokenFile.append(token.line, to: addTo) }
            StandardError.write("sluice: the line of the gateway's token file\(addTo == nil ? " is" : ", added,"): \(token.line)\n")
            print(token.secret ?? "")
        }
    }
}

extension AdminRole: ExpressibleByArgument {}

/// The options of a command that sends a question about a user to the admin port.
struct AdminQuestion: ParsableArguments {
    @OptionGroup var target: AdminTarget

    @Option(help: "The user's id or e-mail.")
    var user: String

    @Flag(help: "Print everything as JSON.")
    var json = false

    /// Sends the question and prints the answer, as lines or as JSON.
    /// - Parameters:
    ///   - subject: Query parameters of the question besides the user.
    ///   - lines: The member of the answer that holds the lines.
    /// - Throws: The gateway's error if the status is not 200.
    func ask(_ route: String, _ subject: [String: String], lines: String) async throws {
        let query = subject.merging(["user": user]) { first, _ in first }
        let answer = try await target.client().get("/admin/v1/\(route)", query)
        guard answer.status == 200 else { throw answer.error }
        if json { return print(answer.json.text) }
        // The lines have queries and names that clients chose.
        for line in answer.json[lines]?.array ?? [] { print(TerminalText.shown(line.string ?? "")) }
    }
}
