import Crypto
import FoundationEssentials
import JWTKit
package import SluiceCore
package import SluicePorts
import SluiceValues

/// The user that a token proves.
package struct VerifiedToken: Sendable {
    package var user: UserContext
    /// The time of expiry, in milliseconds since 1970.
    package var expires: Int64
}

/// Issues and verifies an app's tokens: JWT with HS256.
package struct AccessTokens: Sendable {
    /// The lifetime of an access token, in seconds.
    package static let lifetime: Int64 = 30 * 60
    /// The lifetimes that an operator may choose, in seconds. A token is valid until its end, also if its user is logged out.
    package static let lifetimes: ClosedRange<Int64> = 60...86_400
    /// The name of the signing key in the database.
    package static let keyName = "access"
    /// The longest token, in bytes. A longer one throws `badAuthentication` before it is decoded.
    static let maximumBytes = 64 << 10

    private let appID: String
    private let keys: JWTKeyCollection
    private let environment: any Environment

    /// - Parameter key: The app's signing key, which all its gateways share.
    /// - Throws: `configInvalid` if the key has fewer than 32 bytes.
    package init(appID: String, key: [UInt8], environment: any Environment = SystemEnvironment()) async throws(SluiceError) {
        guard key.count >= 32 else {
            throw SluiceError(.configInvalid, "The signing key has \(key.count) bytes.", fix: "Use 32 random bytes or more.")
        }
        self.appID = appID
        self.environment = environment
        keys = await JWTKeyCollection().add(
            hmac: HMACKey(key: SymmetricKey(data: key)), digestAlgorithm: .sha256, parser: DefaultJWTParser(jsonDecoder: ClaimsDecoder()))
    }

    /// Verifies signature, app, kind and time of an access token. It costs one HMAC and no lookup.
    ///
    /// - Throws: `tokenExpired`, `badAuthentication`.
    package func verify(_ text: String) async throws(SluiceError) -> VerifiedToken {
        let claims = try await claims(text, .access)
        let identities = claims.identities?.json ?? .array([])
        return VerifiedToken(
            user: UserContext(
                id: claims.sub, type: UserAccount.type(identities), data: claims.data?.json ?? .object([]),
                customData: claims.user_data?.json ?? .object([]), identities: identities),
            expires: claims.expires)
    }

    /// Returns an access token with the account's current data. `lifetime` is in seconds.
    package func access(for account: UserAccount, lifetime: Int64 = Self.lifetime) async throws(SluiceError) -> String {
        var claims = blank(.access, user: account.id, lifetime: lifetime)
        claims.user_data = ClaimValue(account.customData)
        claims.data = ClaimValue(account.data)
        claims.identities = ClaimValue(account.identities)
        return try await sign(claims)
    }

    // MARK: Refresh tokens

    /// Returns a refresh token with its expiry in milliseconds since 1970. `lifetime` is in seconds.
    func refresh(for user: String, lifetime: Int64) async throws(SluiceError) -> (text: String, expires: Int64) {
        let claims = blank(.refresh, user: user, lifetime: lifetime)
        return (try await sign(claims), claims.expires)
    }

    /// Returns the id of the user in a refresh token. Only the directory can check for revocation.
    ///
    /// - Throws: `invalidSession`.
    func user(refresh text: String) async throws(SluiceError) -> String {
        do {
            return try await claims(text, .refresh).sub
        } catch {
            throw SluiceError(.invalidSession, "The refresh token is not valid: \(error.message)")
        }
    }

    /// Returns the SHA-256 that the directory stores for a refresh token.
    static func hash(_ text: String) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }

    // MARK: Claims

    private func blank(_ kind: Claims.Kind, user: String, lifetime: Int64) -> Claims {
        let now = environment.wallMilliseconds() / 1_000
        let random = SymmetricKey(size: .bits128).withUnsafeBytes { Hex.encode($0) }
        return Claims(sub: user, app: appID, typ: kind, iat: now, exp: now + lifetime, jti: random)
    }

    private func sign(_ claims: Claims) async throws(SluiceError) -> String {
        do {
            return try await keys.sign(claims)
        } catch {
            throw SluiceError(.internalError, "A token could not be created.", cause: ErrorCause(error))
        }
    }

    private func claims(_ text: String, _ kind: Claims.Kind) async throws(SluiceError) -> Claims {
        guard text.utf8.count <= Self.maximumBytes else {
            throw SluiceError(.badAuthentication, "The token has \(text.utf8.count) bytes, over the limit of \(Self.maximumBytes).")
        }
        let claims: Claims
        do {
            claims = try await keys.verify(text, as: Claims.self)
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
