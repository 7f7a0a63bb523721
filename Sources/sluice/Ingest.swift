import ArgumentParser
import Foundation
import SluiceCore
import SluiceGateway

struct Ingest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send asymmetric objects to a gateway: NDJSON from files or standard input.",
        discussion: """
            Each line is one object of the type. Lines are sent in batches; a batch that gets no answer is sent again, which is harmless
            because an object lands once. Refused lines are printed on standard error with their numbers; the exit code is then 3.
            """)

    @Argument(help: "The asymmetric type.")
    var type: String

    @Argument(help: ArgumentHelp("Files of NDJSON; standard input when there are none.", valueName: "file"))
    var files: [String] = []

    @OptionGroup var login: LoginOptions

    @Option(help: "Lines of one request, 1 to 10,000.")
    var batch = 1_000

    func validate() throws {
        guard (1...10_000).contains(batch) else { throw ValidationError("--batch is 1 to 10,000, not \(batch).") }
    }

    func run() async throws {
        try await reporting {
            let client = GatewayClient(url: login.url)
            let token = try await login.token(client)
            var sent = SentLines(type: type, client: client, token: token, batch: batch)
            for file in files.isEmpty ? ["/dev/stdin"] : files { try await sent.send(file: file) }
            StandardError.write("\(sent.accepted) accepted, \(sent.rejected) rejected\n")
            if sent.rejected > 0 { throw ExitCode(3) }
        }
    }
}

/// Who asks, and where.
struct LoginOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's address.", valueName: "http://host:port"))
    var url = "http://127.0.0.1:8090"

    @Option(help: "The app's id.")
    var app = "dev"

    @Option(help: "The user's e-mail; without it, and without --token, an anonymous user.")
    var email: String?

    @Option(help: "The user's password; default: the environment's SLUICE_PASSWORD.")
    var password: String?

    @Option(help: "An access token, in place of a login.")
    var token: String?

    func token(_ client: GatewayClient) async throws -> String {
        if let token { return token }
        guard let email else { return try await client.login(app: app, provider: "anon-user", [:]) }
        let secret = password ?? ProcessEnvironment()["SLUICE_PASSWORD"] ?? ""
        return try await client.login(app: app, provider: "local-userpass", ["username": .string(email), "password": .string(secret)])
    }
}

/// Sends lines in batches and counts what became of them.
struct SentLines {
    let type: String
    let client: GatewayClient
    let token: String
    let batch: Int
    private(set) var accepted = 0
    private(set) var rejected = 0

    init(type: String, client: GatewayClient, token: String, batch: Int) {
        self.type = type
        self.client = client
        self.token = token
        self.batch = batch
    }

    mutating func send(file: String) async throws {
        let reader = try LineReader(path: file)
        var lines: [String] = []
        var first = 1
        while let line = try reader.next() {
            lines.append(String(decoding: line, as: UTF8.self))
            if lines.count == batch {
                try await send(lines, of: file, first: first)
                first += lines.count
                lines = []
            }
        }
        if !lines.isEmpty { try await send(lines, of: file, first: first) }
    }

    private mutating func send(_ lines: [String], of file: String, first: Int) async throws {
        let body = Data(lines.joined(separator: "\n").utf8)
        let answer = try await client.post("/v1/ingest/\(type)", body, contentType: "application/x-ndjson", token: token, attempts: 20)
        guard let count = answer.json["accepted"]?.int else { throw answer.error }
        accepted += Int(count)
        for refusal in answer.json["rejected"]?.array ?? [] {
            rejected += 1
            let line = first + Int(refusal["line"]?.int ?? 1) - 1
            StandardError.write("\(file):\(line): \(refusal["error"]?.string ?? "rejected")\n")
        }
    }
}
