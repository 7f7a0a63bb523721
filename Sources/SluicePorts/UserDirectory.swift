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
    /// `true` until the first login after a registration. An unclaimed account has no data, so its e-mail can be linked to another one.
    package var isUnclaimed: Bool

    package init(
        id: String, email: String? = nil, passwordHash: String? = nil, provider: String, identities: JSON = .array([]),
        data: JSON = .object([]), customData: JSON = .object([]), isDisabled: Bool = false
    ) {
        isUnclaimed = false
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

/// The identity of a user at a provider. Each belongs to one account.
package struct UserIdentityKey: Hashable, Sendable {
    /// The type of the provider, such as `custom-token`.
    package var provider: String
    /// The id of the user at the provider.
    package var id: String

    package init(provider: String, id: String) {
        self.provider = provider
        self.id = id
    }

    /// The identity as accounts store it.
    package var json: JSON { ["id": .string(id), "provider_type": .string(provider)] }
}

/// An identity that an account gains.
package struct IdentityLink: Hashable, Sendable {
    package var identity: UserIdentityKey
    /// Members for the account's metadata. They replace those of the same name.
    package var data: JSON
    /// For `local-userpass`: the e-mail and the hash of the password that was checked.
    package var password: Password?

    package struct Password: Hashable, Sendable {
        package var email: String
        package var hash: String

        package init(email: String, hash: String) {
            self.email = email
            self.hash = hash
        }
    }

    package init(_ identity: UserIdentityKey, data: JSON, password: Password? = nil) {
        self.identity = identity
        self.data = data
        self.password = password
    }
}

/// One log-in of a user, which all its tokens name. It is valid until it ends, and its tokens with it.
package struct Login: Hashable, Sendable {
    /// The facts under which a login is valid. If they have changed since they were read, no login is added.
    package enum Proof: Hashable, Sendable {
        case password(hash: String)
        case apiKey(id: String)
        case identity(UserIdentityKey)
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
    /// - Throws: `nameInUse` if the e-mail is taken; `identityInUse` if another account has one of the identities.
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
    /// Replaces members of the providers' metadata. Others stay.
    func setData(id: String, _ data: JSON) async throws
    /// Adds an identity to an account. Does nothing if the account has it.
    ///
    /// An unclaimed account with the identity is deleted: it has no data.
    /// - Throws: `identityInUse` if another account has the identity, or if this one has another e-mail; `invalidPassword` if the password
    ///   was changed meanwhile.
    func link(_ link: IdentityLink, to id: String) async throws
    /// Removes an identity from an account, with its e-mail and password if it is that of `local-userpass`. Ends the logins.
    ///
    /// - Throws: `badRequest` if the account does not have it, or has no other one.
    func unlink(_ identity: UserIdentityKey, from id: String) async throws
    /// Disables or enables an account. Disabling ends the logins; enabling does not restore them.
    func setDisabled(id: String, _ isDisabled: Bool) async throws
    /// Sets the hash of the password, and ends the logins.
    func setPassword(id: String, _ hash: String) async throws
    /// Deletes an account with its logins. The user's objects stay.
    func delete(id: String) async throws

    /// Adds a login.
    ///
    /// - Returns: `false` if the proof does not hold any more, or the account is disabled or deleted. Nothing is added then.
    func add(_ login: Login, _ proof: Login.Proof) async throws -> Bool
    /// Adds a login to the account of an identity.
    ///
    /// - Parameters:
    ///   - login: The id of the login.
    ///   - expires: As `Login.expires`.
    /// - Returns: The account, nil if there is none. A disabled account gets no login.
    func add(_ login: String, of identity: UserIdentityKey, expires: Int64) async throws -> UserAccount?
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
