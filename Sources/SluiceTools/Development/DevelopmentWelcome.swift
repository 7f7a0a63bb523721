import SluiceCore
import SluiceDevServer
import SluiceGateway
import SluiceValues

/// The text and the JSON with which `sluice dev` reports that it is ready.
struct DevelopmentWelcome: Sendable {
    let addresses: Gateway.Addresses
    let address: DevelopmentAddress
    let database: DevelopmentDatabase
    /// The app directory; nil without one.
    let directory: String?
    let users: [DevelopmentUsers.User]
    let app: AppConfiguration
    let options: DevelopmentProcess.Options

    /// The address of the client port for apps, also on other machines if they may reach it.
    var url: String { address.url(port: addresses.url.split(separator: ":").last ?? "") }

    var console: String { "\(addresses.adminURL)/console" }

    var json: JSON {
        [
            "url": .string(url), "admin_url": .string(addresses.adminURL), "console": .string(console), "app_id": .string(addresses.appID),
            "postgres": .string(database.shown), "kafka": options.kafka.map { .string($0) } ?? .null,
            "app": directory.map { .string($0) } ?? .null,
            "users": .array(users.map(Self.json)),
            "try": .array(commands.map { .string($0) }),
        ]
    }

    private static func json(_ user: DevelopmentUsers.User) -> JSON {
        [
            "id": .string(user.id), "email": .string(user.email), "password": user.password.map { .string($0) } ?? .null,
            "token": .string(user.token),
        ]
    }

    var text: String {
        var lines = [
            "", "Sluice is ready. This is for development: it learns the schema from clients and, without rules, allows everything.", "",
            "  url         \(url)", "  app id      \(addresses.appID)", "  admin       \(addresses.adminURL)",
            "  console     \(console)  (this machine only, without a login)",
            "  PostgreSQL  \(database.shown)", "  log         \(options.kafka ?? "embedded")",
        ]
        if let directory { lines.append("  app         \(directory)  (edits are taken up within two seconds)") }
        for user in users {
            let login = user.password.map { "password \($0)" } ?? "no password of sluice dev"
            lines += ["", "  user        \(user.email)  \(login)", "  token       \(user.token)"]
        }
        let hasClasses = app.schema.types.contains { $0.kind == .topLevel }
        lines += ["", hasClasses ? "Try:" : "Once an app has connected and its classes are known, watch one:"]
        lines += commands.map { "  \($0)" }
        lines += ["", "Ctrl-C stops all of it.", ""]
        return lines.joined(separator: "\n")
    }

    /// The commands to try next.
    private var commands: [String] {
        let type = app.schema.types.first { $0.kind == .topLevel }?.name ?? "<Class>"
        let watch = "sluice watch --url \(url) --app \(addresses.appID) --type"
        guard options.sample != nil, let bob = users.last else { return ["\(watch) \(type) TRUEPREDICATE"] }
        let place =
            switch database {
            case .own(let server): server.conninfo
            case .borrowed(let borrowed): borrowed.withoutPassword
            }
        let login = bob.password.map { "--email \(bob.email) --password \($0)" } ?? "--token \(bob.token)"
        return [
            "\(watch) Task \(login) TRUEPREDICATE",
            "psql \(ShellText.word(place)) -c \"UPDATE tasks SET is_done = true WHERE _id = \(SQLQuote.postgresLiteral(SampleApp.sharedTask))\"",
            "sluice why --admin \(addresses.adminURL) --user \(bob.email) --type Task --id \(SampleApp.privateTask)",
        ]
    }
}

extension RuleReload {
    /// The outcome of an edit, in one line.
    var line: String {
        switch self {
        case .used(_, let changes): return "reloaded: \(changes.line)"
        case .refused(let error): return "refused: \(Self.reason(error)); the old rules and classes stay"
        case .failed(let error): return "not reloaded yet: \(Self.reason(error)); the old rules stay, and the gateway tries again"
        }
    }

    /// The first problem, which starts with its file and line, and the number of others.
    private static func reason(_ error: SluiceError) -> String {
        let plugin = RuleCheck.Result(refusal: error).refusals
        let lines = error.code == .pluginRefused ? plugin : error.operatorText.split(separator: "\n").map(String.init)
        let first = lines.first.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 } ?? error.code.name
        return lines.count > 1 ? "\(first) (and \(lines.count - 1) more)" : first
    }
}
