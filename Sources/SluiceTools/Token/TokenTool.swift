package import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
package import SluiceValues

/// Issues access tokens with the operator's access to the database: `sluice token`.
package struct TokenTool: Sendable {
    /// The user of a token.
    package enum Subject: Hashable, Sendable {
        case id(String)
        case email(String)
    }

    private let appID: String
    private let conninfo: String
    private let environment: any Environment

    package init(appID: String, postgres: String, environment: any Environment = SystemEnvironment()) {
        self.appID = appID
        conninfo = postgres
        self.environment = environment
    }

    /// Returns an access token of a login of its own. The audit log has its issue before the caller has the token.
    ///
    /// - Parameters:
    ///   - lifetime: In seconds, within `AccessTokens.lifetimes`.
    ///   - claims: Members that replace those of the user's custom data in this token.
    /// - Throws: `userNotFound`, `userDisabled`, `configInvalid`; `configMissing` if no gateway has run with the database.
    package func token(for subject: Subject, lifetime: Int64, claims: JSON) async throws -> String {
        try Self.check(lifetime, claims)
        let pool = PostgresPool(conninfo, name: "token", size: 1)
        do {
            let result = try await token(subject, lifetime, claims, pool)
            await pool.close()
            return result
        } catch {
            await pool.close()
            throw PostgresError.forPort(error)
        }
    }

    private static func check(_ lifetime: Int64, _ claims: JSON) throws(SluiceError) {
        guard AccessTokens.lifetimes.contains(lifetime) else {
            throw SluiceError(
                .configInvalid, "\(lifetime) seconds is not a valid lifetime of a token.",
                fix: "Give \(AccessTokens.lifetimes.lowerBound) to \(AccessTokens.lifetimes.upperBound).")
        }
        guard claims.members != nil else {
            throw SluiceError(.configInvalid, "The claims are no JSON object.", fix: #"Write them as {"team": "red"}."#)
        }
    }

    private func token(_ subject: Subject, _ lifetime: Int64, _ claims: JSON, _ pool: PostgresPool) async throws -> String {
        let store = SigningKeyStore(pool: pool, sealers: try KeyEncryption.sealers())
        guard let key = try await store.signingKey(AccessTokens.keyName) else {
            throw SluiceError(
                .configMissing, "The database has no signing key: no gateway has run with it.", fix: "Start `sluice serve` with it once.")
        }
        let directory = PostgresUsers(pool: pool)
        var account = try await account(subject, directory)
        account.customData = try Self.merged(account.customData, claims)
        let issued = account
        let tokens = try await AccessTokens(appID: appID, key: key.key, id: key.id, environment: environment)
        let role = try await pool.withConnection { try await $0.query("SELECT current_user")[0, 0] } ?? ""
        let author = AuditAuthor(actor: "database role \(role)", address: "", action: "sluice token")
        return try await AuditAuthor.$current.withValue(author) {
            try await AuditLog(pool: pool).noting("access token of user \(issued.id)", outcome: { _ in ["seconds": .int(lifetime)] }) {
                let login = tokens.login(of: issued.id, lifetime: lifetime)
                guard try await directory.add(login, .none) else {
                    throw SluiceError(.userDisabled, "User \(issued.id) was disabled or deleted meanwhile.")
                }
                return tokens.access(for: issued, login: login.id, lifetime: lifetime)
            }
        }
    }

    private func account(_ subject: Subject, _ directory: PostgresUsers) async throws -> UserAccount {
        let (found, name): (UserAccount?, String) =
            switch subject {
            case .id(let id): (try await directory.find(id: id), id)
            case .email(let email): (try await directory.find(email: try EmailAddress(email).text), email)
            }
        guard let found else {
            throw SluiceError(.userNotFound, "User \(name) does not exist.", fix: "The console and GET /admin/v1/users list the users.")
        }
        guard !found.isDisabled else {
            throw SluiceError(.userDisabled, "User \(name) is disabled.", fix: "Enable it with PUT /admin/v1/users/\(found.id)/enable.")
        }
        return found
    }

    private static func merged(_ data: JSON, _ claims: JSON) throws(SluiceError) -> JSON {
        var members = data.members ?? []
        for claim in claims.members ?? [] {
            members.removeAll { $0.key == claim.key }
            members.append(claim)
        }
        let result = JSON.object(members)
        guard result.utf8.count <= UserService.customDataBytes else {
            throw SluiceError(
                .configInvalid,
                "The custom data and the claims have \(result.utf8.count) bytes, over the limit of \(UserService.customDataBytes).",
                fix: "Give fewer claims.")
        }
        return result
    }
}
