package import SluiceCore

/// A user account as authentication sees it.
package struct UserAccount: Hashable, Sendable {
    /// 24 hexadecimal digits.
    package var id: String
    /// The name of a `local-userpass` account, in the normal form of `EmailAddress`. Nil for other accounts.
    package var email: String?
    /// As `PasswordHasher` writes it.
    package var passwordHash: String?
    /// The provider of the first identity.
    package var provider: String
    /// `[{"id": external id, "provider_type": …}]`.
    package var identities: JSON
    /// Metadata of the provider.
    package var data: JSON
    package var customData: JSON
    package var isDisabled: Bool

    package init(
        id: String, email: String? = nil, passwordHash: String? = nil, provider: String, identities: JSON = .array([]),
        data: JSON = .object([]), customData: JSON = .object([]), isDisabled: Bool = false
    ) {
        self.id = id
        self.email = email
        self.passwordHash = passwordHash
        self.provider = provider
        self.identities = identities
        self.data = data
        self.customData = customData
        self.isDisabled = isDisabled
    }

    /// What rules see of the user.
    package var context: UserContext {
        UserContext(id: id, type: Self.type(identities), data: data, customData: customData, identities: identities)
    }

    /// The type that rules know as `%%user.type`: `server` for the account of a server key, whose identity is the key's; an end user
    /// who logs in by a key keeps the identities of the account.
    static func type(_ identities: JSON) -> String {
        identities.array?.contains { $0["provider_type"]?.string == APIKeys.provider } == true ? "server" : "normal"
    }
}

/// Where accounts and refresh tokens are kept: the port of authentication.
package protocol UserDirectory: Sendable {
    /// - Throws: `nameInUse` when the e-mail is taken.
    func create(_ account: UserAccount) async throws
    func find(id: String) async throws -> UserAccount?
    /// - Parameter email: in its normal form.
    func find(email: String) async throws -> UserAccount?
    /// Accounts in the order of their ids, after the given one; from the first when it is empty.
    func list(after id: String, limit: Int) async throws -> [UserAccount]

    // The changes throw `userNotFound`.
    func setPasswordHash(id: String, _ hash: String) async throws
    func setCustomData(id: String, _ data: JSON) async throws
    /// Disabling revokes the refresh tokens; enabling brings none back.
    func setDisabled(id: String, _ isDisabled: Bool) async throws
    /// Takes the tokens along; the user's objects stay (AUTH-5).
    func delete(id: String) async throws

    /// - Parameters:
    ///   - hash: SHA-256 of the token's text.
    ///   - expires: milliseconds since 1970.
    func addRefreshToken(hash: [UInt8], user: String, expires: Int64) async throws
    /// The user whom a token belongs to.
    /// - Throws: `invalidSession` when it is unknown, expired or revoked; `userDisabled`.
    func user(refreshToken hash: [UInt8], now: Int64) async throws -> String
    func revoke(refreshToken hash: [UInt8]) async throws
    func revokeRefreshTokens(user: String) async throws
}
