import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceValues

/// The initial users. The passwords of those that `sluice dev` creates are created once and stored in the database.
enum DevelopmentUsers {
    static let emails = ["alice@example.com", "bob@example.com"]

    struct User {
        var id: String
        var email: String
        /// nil if the account has a password of its own, or if the app has no log-in by password.
        var password: String?
        var token: String
    }

    /// Creates the users that do not exist. A disabled account is left out, as it cannot log in.
    static func prepare(_ conninfo: String, app: AppConfiguration) async throws -> [User] {
        let pool = PostgresPool(conninfo, name: "development", size: 1)
        let users: Result<[User], any Error>
        do { users = .success(try await prepare(pool, conninfo, app)) } catch { users = .failure(error) }
        await pool.close()
        return try users.get()
    }

    private static func prepare(_ pool: PostgresPool, _ conninfo: String, _ app: AppConfiguration) async throws -> [User] {
        let access = try await GatewayAccess.open(
            pool: pool, app: app, isDevelopment: true, passwordCost: .stored, outside: .none, environment: SystemEnvironment(),
            logger: ProcessLogger.make())
        var users: [User] = []
        for email in emails {
            let name = "development:\(email)"
            let secret = Hex.encode((0..<6).map { _ in UInt8.random(in: .min ... .max) })
            // The first proposal is stored; later starts get the same password.
            let password = String(
                decoding: try await SigningKeyStore(pool: pool).signingKey(name, proposed: Array(secret.utf8)), as: UTF8.self)
            let known = try await access.users.directory.find(email: email)
            if known?.isDisabled == true { continue }
            let id = if let known { known.id } else { try await access.users.create(email: email, password: password).id }
            if let token = try await login(email, password, access) {
                users.append(User(id: id, email: email, password: password, token: token))
            } else {
                users.append(User(id: id, email: email, password: nil, token: try await token(of: id, app, conninfo)))
            }
        }
        return users
    }

    /// Returns an access token; nil if the password is not that of the account, or if the app has no log-in by password.
    private static func login(_ email: String, _ password: String, _ access: GatewayAccess) async throws -> String? {
        do {
            return try await access.users.login(email: email, password: password, from: "development").accessToken
        } catch let error as SluiceError where error.code == .invalidPassword || error.code == .providerDisabled {
            return nil
        }
    }

    /// Returns an access token that needs no log-in.
    private static func token(of id: String, _ app: AppConfiguration, _ conninfo: String) async throws -> String {
        try await TokenTool(appID: app.appID, postgres: conninfo).token(
            for: .id(id), lifetime: AccessTokens.lifetime, claims: .object([]))
    }
}
