package import Logging
package import SluiceCore
import SluiceIdentity
import SluicePorts
package import SluicePostgres

/// The authentication of a gateway: accounts, tokens, API keys, and the watch for changed users.
package struct GatewayAccess: Sendable {
    package let users: UserService
    /// The API keys that programs log in with.
    let keys: APIKeys
    /// Registration, confirmation and new passwords.
    let accounts: EmailAccounts
    /// The users of other issuers.
    let identities: IdentityLogins
    let functions: any AppFunctions
    let authenticator: AccountAuthenticator
    let appKeys: AppKeys
    /// The changes of users since the gateway opened.
    let watch: UserWatch

    /// The ways of accounts to other services. A process that serves no logins has none.
    package struct Outside: Sendable {
        var http: (any OutboundHTTP)?
        var mail: AccountMail?
        var functions: any AppFunctions = NoFunctions()

        package static var none: Outside { Outside() }
    }

    package static func open(
        pool: PostgresPool, app: AppConfiguration, isDevelopment: Bool, passwordCost: PasswordHasher.Cost,
        outside: Outside, environment: any Environment, logger: Logger
    ) async throws -> GatewayAccess {
        let appKeys = try await AppKeys.open(pool, environment: environment)
        let tokens = AccessTokens(appID: app.appID, keys: appKeys.signing, environment: environment)
        try await PostgresError.translating { try await followCustomData(app, pool, logger) }
        let directory = PostgresUsers(pool: pool)
        let watch = try await UserWatch(UserChangeStore(pool: pool), environment: environment, logger: logger)
        let pending = PendingUserStore(pool: pool)
        let providers = Set(app.users.providers.filter(\.isEnabled).map(\.type))
        var settings = UserService.Settings(
            providers: providers, refreshTokenLifetime: Int64(app.users.refreshTokenLifetime), exemptsLoopback: isDevelopment)
        settings.passwords = try await policy(app.users.passwordLogin)
        let users = UserService(
            directory: directory, pending: pending, tokens: tokens, settings: settings,
            passwords: PasswordHasher(cost: passwordCost), creation: UserCreation(app.users.creationFunction, of: outside.functions),
            environment: environment, changed: { _, _ in await watch.look() })
        let tokenLogins = try await outside.http.map {
            TokenLoginBuilder(
                secrets: app.secrets, variables: ProcessEnvironment(), http: $0, functions: outside.functions, environment: environment,
                logger: logger)
        }?.build(app.users.providers)
        return GatewayAccess(
            users: users, keys: APIKeys(directory: APIKeyStore(pool: pool), users: users),
            accounts: EmailAccounts(
                app.users.passwordLogin, users: users, pending: pending, resets: PasswordResetStore(pool: pool), mail: outside.mail,
                functions: outside.functions),
            identities: IdentityLogins(users: users, tokens: tokenLogins ?? TokenLogins(), logger: logger), functions: outside.functions,
            authenticator: AccountAuthenticator(tokens: tokens, directory: directory), appKeys: appKeys, watch: watch)
    }

    /// Returns the policy, with the file of refused passwords. A thread of its own reads it.
    private static func policy(_ login: PasswordLogin) async throws -> PasswordPolicy {
        guard let path = login.refusedPasswords else { return PasswordPolicy(minimumLength: login.minimumLength) }
        let reading = WorkQueue(label: "refused passwords", width: 1, waiting: 1)
        let refused = try await reading.run { Result { () throws(SluiceError) in try RefusedPasswords.load(path) } }
        return PasswordPolicy(minimumLength: login.minimumLength, refused: try refused.get())
    }

    /// Takes custom data from the app's collection if it names one, and from the admin API otherwise.
    private static func followCustomData(_ app: AppConfiguration, _ pool: PostgresPool, _ logger: Logger) async throws {
        let follower = CustomDataTable(pool: pool)
        guard let place = app.customDataPlace else { return try await follower.unfollow() }
        if try await follower.follow(place) { return }
        logger.warning(
            "The table or column does not exist: custom data come from the admin API.",
            metadata: [
                "table": "\(place.schema).\(place.table)", "column": "\(place.userID)", "file": "auth/custom_user_data.json",
                "fix": "Run `sluice schema apply`, which creates it, and restart.",
            ])
    }
}

/// An authenticator that verifies a token and reads the account. A session starts with the user's current data. Disabled users, and
/// tokens of a login that has ended, cannot start one.
struct AccountAuthenticator: Authenticator {
    let tokens: AccessTokens
    let directory: any UserDirectory

    func authenticate(token: String) async throws -> Authenticated {
        let verified = try await tokens.verify(token)
        let account = try await directory.account(id: verified.user.id, login: verified.login)
        return Authenticated(user: account.context, login: verified.login, expires: verified.expires)
    }

    func current(_ user: Authenticated) async throws -> UserContext {
        guard let login = user.login else { return try await self.user(id: user.user.id) }
        return try await directory.account(id: user.user.id, login: login).context
    }

    func user(id: String) async throws -> UserContext {
        try UserService.usable(try await directory.find(id: id), id).context
    }
}
