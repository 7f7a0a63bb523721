import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres

extension RunningGateway {
    /// An access token of a login of its own, signed with the app's key.
    /// - Parameter seconds: from now; negative: it has expired so long ago.
    package func token(of user: String, app: String = "shop", lasting seconds: Int64 = AccessTokens.lifetime) async throws -> String {
        let pool = PostgresPool(conninfo, name: "test", size: 1)
        let key = try await SigningKeyStore(pool: pool).signingKey("access", proposed: [])
        let tokens = try await AccessTokens(appID: app, key: key, environment: WrongClock(seconds: seconds - AccessTokens.lifetime))
        let login = tokens.login(of: user, lifetime: AccessTokens.lifetime)
        // A user who is disabled or deleted gets a token without one.
        _ = try await LoginStore(pool: pool).add(login, .none)
        await pool.close()
        return tokens.access(for: UserAccount(id: user, provider: "local-userpass"), login: login.id)
    }
}

/// The system's environment with a clock that is wrong by seconds.
private struct WrongClock: Environment {
    let seconds: Int64
    private let system = SystemEnvironment()

    init(seconds: Int64) { self.seconds = seconds }

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() + seconds * 1_000 }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func random() -> UInt64 { system.random() }
    func sleep(nanoseconds: UInt64) async throws { try await system.sleep(nanoseconds: nanoseconds) }
}
