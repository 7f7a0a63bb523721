import ArgumentParser
import Foundation
import SluiceCore
import SluiceGateway

/// The options that secure a gateway's admin port.
struct AdminOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Admin tokens, one a line, as 'sluice admin-token' makes them. Default: SLUICE_ADMIN_TOKEN_FILE, else SLUICE_ADMIN_TOKEN.",
            valueName: "file"))
    var adminTokenFile: String?

    @Option(help: ArgumentHelp("A Unix socket, for its owner alone, that serves the admin port without a token.", valueName: "path"))
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
            throw SluiceError(.configInvalid, "The admin tokens given are hashes.", fix: "Give the token that sluice admin-token printed.")
        }
        return GatewayClient(url: admin, adminToken: secret)
    }
}

struct AdminTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin-token", abstract: "Make a token of the admin port.",
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
            if let addTo { try append(token.line, to: addTo) }
            StandardError.write("sluice: the line of the gateway's token file\(addTo == nil ? " is" : ", added,"): \(token.line)\n")
            print(token.secret ?? "")
        }
    }

    private func append(_ line: String, to path: String) throws {
        let manager = FileManager.default
        if !manager.fileExists(atPath: path) {
            _ = manager.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), let file = FileHandle(forWritingAtPath: path) else {
            throw SluiceError(.configInvalid, "The file \(path) cannot be written.", fix: "Name another with --add-to.")
        }
        let begin = text.isEmpty || text.hasSuffix("\n") ? "" : "\n"
        // The gateway rejects two tokens of one name, so the command checks the result before it writes.
        _ = try AdminTokens.parse(text + begin + line, of: path)
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(begin)\(line)\n".utf8))
        try file.close()
    }
}

extension AdminRole: ExpressibleByArgument {}
