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

/// One log-in of a user, which all its tokens name. It is valid until it ends, and its tokens with it.
package struct Login: Hashable, Sendable {
    /// The facts under which a login is valid. If they have changed since they were read, no login is added.
    package enum Proof: Hashable, Sendable {
        case password(hash: String)
        case apiKey(id: String)
        /// An account that was just created, or an operator's word.
        case none
    }

    /// The id: 32 hexadecimal digits.
    package var id: String
    package var user: String
    /// The time at which its last token expires, in milliseconds since 1970.
    package var expires: Int64

    package init(id: String, user: String, expires: Int64) {
        self.id = id
        self.user = user
        self.expires = expires
    }
}

/// The store of accounts and logins, as the port of authentication.
package protocol UserDirectory: Sendable {
    /// Adds an account.
    ///
    /// - Throws: `nameInUse` if the e-mail is taken.
    func create(_ account: UserAccount) async throws
    func find(id: String) async throws -> UserAccount?
    /// - Parameter email: The e-mail in normal form.
    func find(email: String) async throws -> UserAccount?
    /// Returns the account of a login, with `false` if the login has ended; nil if there is no account.
    func find(id: String, login: String) async throws -> (account: UserAccount, isLoggedIn: Bool)?
    /// Returns accounts in the order of their ids, from the one after `id`. An empty `id` starts at the first.
    func list(after id: String, limit: Int) async throws -> [UserAccount]

    // All changes throw `userNotFound`.
    func setCustomData(id: String, _ data: JSON) async throws
    /// Disables or enables an account. Disabling ends the logins; enabling does not restore them.
    func setDisabled(id: String, _ isDisabled: Bool) async throws
    /// Deletes an account with its logins. The user's objects stay.
    func delete(id: String) async throws

    /// Adds a login.
    ///
    /// - Returns: `false` if the proof does not hold any more, or the account is disabled or deleted. Nothing is added then.
    func add(_ login: Login, _ proof: Login.Proof) async throws -> Bool
    /// Takes a refresh token.
    ///
    /// A token of the next generation makes all older ones invalid. An older one ends the login: somebody else has a copy.
    /// - Parameter generation: The number of rotations before the token.
    /// - Returns: The account.
    /// - Throws: `invalidSession` if the login has ended or expired, or if the token is older; `userDisabled`.
    func take(login: String, generation: Int64, now: Int64) async throws -> UserAccount
    /// Ends a login. Does nothing if it has ended.
    func end(login: String) async throws
    /// Ends all logins of a user.
    func endLogins(of user: String) async throws
}
