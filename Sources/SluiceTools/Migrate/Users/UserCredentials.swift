import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceValues

/// Makes reset tokens and API keys for migrated users. The secrets go to the credential file, and their hashes to the database.
struct UserCredentials {
    private static let millisecondsPerDay: Int64 = 86_400_000

    private let file: CredentialFile
    private let renews: Bool
    private let now: Int64
    private let expires: Int64
    /// The page of the app that sets a password; nil if the export names none.
    private let page: String?
    private let accounts: UserImport

    init(
        _ file: CredentialFile, app: AppConfiguration, _ options: UserMigration.Options, now: Int64, _ session: PostgresSession
    ) {
        self.file = file
        self.now = now
        renews = options.renews
        expires = now + Int64(options.validDays) * Self.millisecondsPerDay
        page = app.users.providers.first { $0.type == "local-userpass" }?.config["resetPasswordUrl"]?.string.flatMap {
            $0.isEmpty ? nil : $0
        }
        accounts = UserImport(session)
    }

    /// Makes what a user lacks.
    func make(for user: ExportedUser, _ report: inout UserMigrationReport) throws {
        if let email = user.account.email { try makeReset(for: user.account.id, email, &report) }
        for key in user.keys { try make(key, &report) }
    }

    private func makeReset(for user: String, _ email: String, _ report: inout UserMigrationReport) throws {
        switch try accounts.password(of: user, now: now) {
        case .set, .disabled: return
        case .awaited where !renews: report.awaited += 1
        case .awaited, .missing:
            let reset = (renews ? nil : file.line("password", user).flatMap(Reset.init)) ?? Reset(expires: expires)
            let isUsable = reset.expires > now
            let used = isUsable ? reset : Reset(expires: expires)
            if !isUsable || !reset.isInFile { write(used, for: user, email) }
            try accounts.setReset(used.id, hash: APIKeys.hash(used.token), user: user, expires: used.expires)
            report.listed += 1
        }
    }

    private func write(_ reset: Reset, for user: String, _ email: String) {
        var members: [JSON.Member] = [
            .init("email", .string(email)), .init("tokenId", .string(reset.id)), .init("token", .string(reset.token)),
            .init("expires", .int(reset.expires / 1_000)),
        ]
        if let page {
            members.append(.init("link", .string(AccountLink.url(page, token: reset.token, id: reset.id))))
        }
        file.add("password", user, members)
    }

    private func make(_ key: APIKey, _ report: inout UserMigrationReport) throws {
        guard try !accounts.hasKey(key.id) else { return }
        let known = file.line("api-key", key.id)?["key"]?.string
        let secret = known ?? APIKeys.newSecret()
        guard try accounts.add(key, hash: APIKeys.hash(secret)) else {
            return report.miss(key.user, "another API key has the name of the user's key")
        }
        if known == nil {
            file.add(
                "api-key", key.id,
                [
                    .init("user", .string(key.user)), .init("name", .string(key.name)), .init("server", .bool(key.isServer)),
                    .init("key", .string(secret)),
                ])
        }
        report.keys += 1
    }
}

/// A token with which a user sets a password.
private struct Reset {
    var id: String
    var token: String
    /// The time of expiry, in milliseconds since 1970.
    var expires: Int64
    var isInFile: Bool

    /// A new token.
    init(expires: Int64) {
        (id, token) = (APIKeys.newSecret(), APIKeys.newSecret())
        // Lines have seconds, so that the database and the file agree.
        self.expires = expires / 1_000 * 1_000
        isInFile = false
    }

    /// Reads the line of an earlier run.
    init?(_ line: JSON) {
        guard let id = line["tokenId"]?.string, let token = line["token"]?.string, let seconds = line["expires"]?.int else { return nil }
        (self.id, self.token, expires, isInFile) = (id, token, seconds * 1_000, true)
    }
}
