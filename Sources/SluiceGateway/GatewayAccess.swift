import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// Who users are: accounts, tokens, and what their changes do to sessions.
struct GatewayAccess: Sendable {
    let users: UserService
    let authenticator: AccountAuthenticator
    /// Set once the sessions are there.
    let onChange: UserChangeHook

    static func open(pool: PostgresPool, app: AppConfiguration, environment: any Environment) async throws -> GatewayAccess {
        var generator = SystemRandomNumberGenerator()
        let proposed = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let key = try await TokenStore(pool: pool).signingKey("access", proposed: proposed)
        let tokens = try await AccessTokens(appID: app.appID, key: key, environment: environment)
        let directory = PostgresUsers(pool: pool)
        let onChange = UserChangeHook()
        let providers = Set(app.authProviders.filter(\.isEnabled).map(\.type))
        let users = UserService(
            directory: directory, tokens: tokens,
            settings: .init(providers: providers, refreshTokenLifetime: Int64(app.refreshTokenLifetime)), environment: environment,
            changed: { await onChange.tell($0, $1) })
        return GatewayAccess(
            users: users, authenticator: AccountAuthenticator(tokens: tokens, directory: directory), onChange: onChange)
    }
}

/// Proves a token and looks its account up, so that a session starts with the user's data as they are now, and a disabled
/// user starts none.
struct AccountAuthenticator: Authenticator {
    let tokens: AccessTokens
    let directory: any UserDirectory

    func authenticate(token: String) async throws -> Authenticated {
        let verified = try await tokens.verify(token)
        guard let account = try await directory.find(id: verified.user.id) else {
            throw SluiceError(.badAuthentication, "User \(verified.user.id) does not exist any more.")
        }
        guard !account.isDisabled else { throw SluiceError(.userDisabled, "User \(account.id) is disabled.") }
        return Authenticated(user: account.context, expires: verified.expires)
    }
}

/// Tells the sessions when a user changes; empty until they exist.
final class UserChangeHook: Sendable {
    private let listener = Mutex<(@Sendable (String, UserService.Change) async -> Void)?>(nil)

    func listen(_ listener: @escaping @Sendable (String, UserService.Change) async -> Void) {
        self.listener.withLock { $0 = listener }
    }

    func tell(_ user: String, _ change: UserService.Change) async { await listener.withLock { $0 }?(user, change) }
}
