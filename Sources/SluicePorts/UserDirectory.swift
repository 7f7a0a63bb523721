package import SluiceValues

/// A user account, as authentication needs it.
package struct UserAccount: Hashable, Sendable {
    /// The id: 24 hexadecimal digits.
    package var id: String
    /// The e-mail of a `local-userpass` account, in the normal form of `EmailAddress`; nil for other accounts.
    package var email: String?
    /// The hash, in the form of `PasswordHasher`.
    package var passwordHash: String?
    /// The provider of the first identity.
    package var provider: String
    /// The identities: `[{"id": external id, "provider_type": …}]`.
    package var identities: JSON
    /// The metadata of the provider.
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
}

/// The store of accounts and refresh tokens, as the port of authentication.
package protocol UserDirectory: Sendable {
    /// Adds an account.
    ///
    /// - Throws: `nameInUse` if the e-mail is taken.
    func create(_ account: UserAccount) async throws
    func find(id: String) async throws -> UserAccount?
    /// - Parameter email: The e-mail in normal form.
    func find(email: String) async throws -> UserAccount?
    /// Returns accounts in the order of their ids, from the one after `id`. An empty `id` starts at the first.
    func list(after id: String, limit: Int) async throws -> [UserAccount]

    // All changes throw `userNotFound`.
    func setCustomData(id: String, _ data: JSON) async throws
    /// Disables or enables an account. Disabling revokes the refresh tokens; enabling does not restore them.
    func setDisabled(id: String, _ isDisabled: Bool) async throws
    /// Deletes an account with its tokens. The user's objects stay.
    func delete(id: String) async throws

    /// - Parameters:
    ///   - hash: The SHA-256 of the token's text.
    ///   - expires: The time of expiry, in milliseconds since 1970.
    func addRefreshToken(hash: [UInt8], user: String, expires: Int64) async throws
    /// Returns the id of the user of a token.
    ///
    /// - Throws: `invalidSession` if the token is unknown, expired or revoked; `userDisabled`.
    func user(refreshToken hash: [UInt8], now: Int64) async throws -> String
    func revoke(refreshToken hash: [UInt8]) async throws
    func revokeRefreshTokens(user: String) async throws
}
