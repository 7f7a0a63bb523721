import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct Ingest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send asymmetric objects to a gateway, and replay rejected ones.",
        subcommands: [IngestSend.self, IngestReplay.self], defaultSubcommand: IngestSend.self)
}

struct IngestSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send asymmetric objects: NDJSON from files or standard input. The default command.",
        discussion: """
            Each line is one object of the type. Lines are read and sent in batches, compressed, each with an Idempotency-Key; a batch that
            gets no answer, or 429 or 5xx, is sent again, and is answered as the first time when it had arrived. Refused lines are printed on
            standard error with their numbers; the exit code is then 3.
            """)

    @Argument(help: "The asymmetric type.")
    var type: String

    @Argument(help: ArgumentHelp("Files of NDJSON. Default: standard input.", valueName: "file"))
    var files: [String] = []

    @OptionGroup var login: LoginOptions

    @Option(help: "An API key, in place of a login; default: the environment's SLUICE_API_KEY.")
    var apiKey: String?

    // A gateway names at most this many rejected objects per request, and the command reports each of them.
    @Option(help: "Lines of one request, 1 to 1,000; fewer beyond 4 MiB.")
    var batch = Limits.ingestNamedRefusals

    func validate() throws {
        guard (1...Limits.ingestNamedRefusals).contains(batch) else { throw ValidationError("--batch is 1 to 1,000, not \(batch).") }
        if apiKey != nil, login.token != nil || login.email != nil {
            throw ValidationError("--api-key excludes --token and --email.")
        }
    }

    func run() async throws {
        try await reporting {
            let client = GatewayClient(url: login.url)
            var sent = IngestSender(type: type, client: client, token: try await token(client), batch: batch)
            if files.isEmpty { try await sent.send(.standardInput, named: "standard input") }
            for file in files { try await sent.send(try LineReader(path: file), named: file) }
            StandardError.write("\(sent.accepted) accepted, \(sent.rejected) rejected\n")
            if sent.rejected > 0 { throw ExitCode(3) }
        }
    }

    private func token(_ client: GatewayClient) async throws -> String {
        let isLogin = login.token != nil || login.email != nil
        if let key = try apiKey ?? (isLogin ? nil : ProcessEnvironment().secret("SLUICE_API_KEY")) { return key }
        return try await login.token(client)
    }
}

/// The options that authenticate a user against a gateway's client port.
struct LoginOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's address.", valueName: "http://host:port"))
    var url = "http://127.0.0.1:8090"

    @Option(help: ArgumentHelp("The app's id. Default: that of the gateway.", valueName: "id"))
    var app: String?

    @Option(help: "The user's e-mail; without it, and without --token, an anonymous user.")
    var email: String?

    @Option(help: "The user's password; default: the environment's SLUICE_PASSWORD.")
    var password: String?

    @Option(help: "An access token, in place of a login.")
    var token: String?

    func app(_ client: GatewayClient) async throws -> String { if let app { app } else { try await client.app() } }

    func token(_ client: GatewayClient) async throws -> String {
        if let token { return token }
        let app = try await app(client)
        guard let email else { return try await client.login(app: app, provider: "anon-user", [:]) }
        let secret = try password ?? ProcessEnvironment().secret("SLUICE_PASSWORD") ?? ""
        return try await client.login(app: app, provider: "local-userpass", ["username": .string(email), "password": .string(secret)])
    }
}
