import Crypto
package import SluiceCore
package import SluicePorts
import SluiceValues

/// The user that a token proves.
package struct VerifiedToken: Sendable {
    package var user: UserContext
    /// The id of the login.
    package var login: String
    /// The time of expiry, in milliseconds since 1970.
    package var expires: Int64
}

/// Issues and verifies an app's tokens: JWT with HS256.
package struct AccessTokens: Sendable {
    /// The lifetime of an access token, in seconds.
    package static let lifetime: Int64 = 30 * 60
    /// The lifetimes that an operator may choose, in seconds.
    package static let lifetimes: ClosedRange<Int64> = 60...86_400
    /// The name of the signing key in the database.
    package static let keyName = "access"
    /// The longest token, in bytes. A longer one throws `badAuthentication` before it is decoded.
    static let maximumBytes = 64 << 10

    private let appID: String
    private let keys: SigningKeys
    private let environment: any Environment

    /// - Parameter keys: The app's signing keys, which all its gateways share.
    package init(appID: String, keys: SigningKeys, environment: any Environment = SystemEnvironment()) {
        self.appID = appID
        self.environment = environment
        self.keys = keys
    }

    /// - Parameters:
    ///   - key: The only signing key.
    ///   - id: Its id.
    /// - Throws: `configInvalid` if the key has fewer than 32 bytes.
    package init(appID: String, key: [UInt8], id: String = "", environment: any Environment = SystemEnvironment()) async throws {
        let keys = try await SigningKeys(environment: environment) { [.init(id: id, bytes: key)] }
        self.init(appID: appID, keys: keys, environment: environment)
    }

    /// Verifies signature, app, kind and time of an access token. It costs one HMAC and no lookup: only the directory knows logins that
    /// have ended.
    ///
    /// - Throws: `tokenExpired`, `badAuthentication`.
    package func verify(_ text: String) async throws(SluiceError) -> VerifiedToken {
        let claims = try await claims(text, .access)
        guard let login = claims.sid else {
            // A release before schema 2 issued it. The client's next token has a login.
            throw SluiceError(.tokenExpired, "The token of user \(claims.sub) names no login.")
        }
        let identities = claims.identities ?? .array([])
        return VerifiedToken(
            user: UserContext(
                id: claims.sub, type: UserAccount.type(identities), data: claims.data ?? .object([]),
                customData: claims.userData ?? .object([]), identities: identities),
            login: login, expires: claims.expires)
    }

    /// Returns an access token with the account's current data. `lifetime` is in seconds.
    package func access(
        for account: UserAccount, login: String, lifetime: Int64 = Self.lifetime
    ) -> String {
        let now = environment.wallMilliseconds() / 1_000
        var claims = blank(.access, user: account.id, login: login, now, expires: now + lifetime)
        claims.userData = account.customData
        claims.data = account.data
        claims.identities = account.identities
        return keys.sign(claims)
    }

    // MARK: Refresh tokens

    /// The facts of a refresh token.
    struct Refresh: Hashable, Sendable {
        var login: Login
        /// The number of rotations before the token.
        var generation: Int64
    }

    /// Returns a refresh token, which expires with its login.
    func text(of refresh: Refresh) -> String {
        let login = refresh.login
        let now = environment.wallMilliseconds() / 1_000
        var claims = blank(.refresh, user: login.user, login: login.id, now, expires: login.expires / 1_000)
        claims.generation = refresh.generation
        return keys.sign(claims)
    }

    /// Returns the facts of a refresh token. Only the directory knows logins that have ended.
    ///
    /// - Throws: `invalidSession`.
    func refresh(_ text: String) async throws(SluiceError) -> Refresh {
        do {
            let claims = try await claims(text, .refresh)
            // A release before schema 2 named no login. The upgrade of the schema gave it this id.
            let login = claims.sid ?? Hex.encode(SHA256.hash(data: Array(text.utf8)).prefix(16))
            return Refresh(login: Login(id: login, user: claims.sub, expires: claims.expires), generation: claims.generation ?? 0)
        } catch {
            // Any other error says nothing about the token.
            guard [.badAuthentication, .tokenExpired].contains(error.code) else { throw error }
            throw SluiceError(.invalidSession, "The refresh token is not valid: \(error.message)")
        }
    }

    /// Returns a new login that ends after `lifetime` seconds.
    package func login(of user: String, lifetime: Int64) -> Login {
        Login(id: Hex.random(bytes: 16), user: user, expires: (environment.wallMilliseconds() / 1_000 + lifetime) * 1_000)
    }

    // MARK: Claims

    private func blank(_ kind: Claims.Kind, user: String, login: String, _ now: Int64, expires: Int64) -> Claims {
        Claims(sub: user, app: appID, typ: kind, iat: now, exp: expires, jti: Hex.random(bytes: 16), sid: login)
    }

    private func claims(_ text: String, _ kind: Claims.Kind) async throws(SluiceError) -> Claims {
        guard text.utf8.count <= Self.maximumBytes else {
            throw SluiceError(.badAuthentication, "The token has \(text.utf8.count) bytes, over the limit of \(Self.maximumBytes).")
        }
        let claims: Claims
        do {
            claims = try await keys.verify(text)
        } catch let error as SluiceError where error.code != .badAuthentication {
            // The keys could not be read, which says nothing about the token.
            throw error
        } catch {
            // The reason is withheld: it would only help to forge tokens.
            throw SluiceError(.badAuthentication, "The token does not belong to the app \(appID).")
        }
        guard claims.app == appID, claims.typ == kind else {
            throw SluiceError(.badAuthentication, "The token is \(claims.typ.rawValue) of \(claims.app), not \(kind.rawValue) of \(appID).")
        }
        guard environment.wallMilliseconds() < claims.expires else {
            throw SluiceError(.tokenExpired, "The token of user \(claims.sub) has expired.")
        }
        return claims
    }
}
